// patchbay/testing/host.hpp - a host that is not there: it keeps what a plugin logs, counts and says, and time stands
// still until a test moves it. Tasks of its pool run one after the other on the calling thread.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "patchbay/plugin.hpp"

struct pb_device;

namespace patchbay::testing {

struct LogLine {
    int32_t level; // PB_LOG_…
    std::string text;
};

class Host {
  public:
    Host() = default;
    Host(const Host&) = delete; // the tables point to it
    Host& operator=(const Host&) = delete;

    std::vector<LogLine> log;
    std::map<std::string, double> metrics; // by name: sums of counters, latest values of gauges
    uint64_t now_ns = 1'000'000'000;
    std::string error; // of the latest call that failed

    // For a device that stands before another one: the table and object that open(name) gives.
    void offer_device(const std::string& name, const pb_device* table, void* self) { devices_[name] = {table, self}; }

    const pb_host& table() const { return table_; }

  private:
    struct Offered {
        const pb_device* table;
        void* self;
    };
    static Host& of(void* ctx) { return *static_cast<Host*>(ctx); }
    static const void* find(void* ctx, const char* id) {
        const Host& host = of(ctx);
        const std::string_view name = id;
        if (name == PB_SERVICE_POOL) return &host.pool_;
        if (name == PB_SERVICE_CLOCK) return &host.clock_;
        if (name == PB_SERVICE_METRICS) return &host.metrics_;
        if (name == PB_SERVICE_DEVICES && !host.devices_.empty()) return &host.device_service_;
        return nullptr;
    }
    static void run(void*, uint32_t count, void (*task)(void*, uint32_t), void* arg) {
        for (uint32_t i = 0; i < count; ++i) task(arg, i);
    }
    static pb_status open(void* ctx, const char* name, const pb_setting*, uint32_t, const pb_device** table,
                          void** self, pb_str* why) {
        const auto at = of(ctx).devices_.find(name);
        if (at == of(ctx).devices_.end()) {
            *why = str("the test offers no such device");
            return PB_UNAVAILABLE;
        }
        *table = at->second.table;
        *self = at->second.self;
        return PB_OK;
    }

    std::map<std::string, Offered> devices_;
    static void keep(void* ctx, int32_t level, pb_str text) { of(ctx).log.push_back({level, std::string(view(text))}); }

    const pb_host table_{sizeof(pb_host), 0, this, keep, [](void* ctx, pb_str text) { of(ctx).error = view(text); },
                         find};
    const pb_pool pool_{sizeof(pb_pool), PB_POOL_REVISION, 1, 0, this, run};
    const pb_clock clock_{sizeof(pb_clock), PB_CLOCK_REVISION, this, [](void* ctx) { return of(ctx).now_ns; }};
    const pb_metrics metrics_{sizeof(pb_metrics), PB_METRICS_REVISION, this,
                              [](void* ctx, const char* name, double n) { of(ctx).metrics[name] += n; },
                              [](void* ctx, const char* name, double x) { of(ctx).metrics[name] = x; }};
    const pb_devices device_service_{sizeof(pb_devices), PB_DEVICES_REVISION, this, open, [](void*, void*) {},
                                     [](void* ctx, void*) { return str(of(ctx).error); }};
};

}  // namespace patchbay::testing
