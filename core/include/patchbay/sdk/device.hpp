// patchbay/sdk/device.hpp - a device as a class: the members below mirror pb_device, ops() returns its table. Optional:
// std::vector<pb_limit> measure(); void graph_begin(), pb_graph* graph_end(), void graph_launch(pb_graph*),
// void graph_free(pb_graph*) noexcept, uint64_t graph_bytes(const pb_graph*) noexcept, all five or none; void
// submit_step() and wait_step(); void to_host_async(void*, const void*, uint64_t); void* host_alloc(uint64_t),
// void host_free(void*) noexcept, void page_to_host(void*, const void*, uint64_t) and page_to_device(…), all four or
// none; of a device that computes nothing, void charge(const pb_cost&) noexcept, uint64_t charged_ns() noexcept and
// uint64_t host_ns() noexcept; of one that may be a rank, void connect(const pb_group&) and void disconnect() noexcept.
#pragma once
#include <algorithm>
#include <cstdio>
#include <vector>

#include "patchbay/abi/device.h"
#include "patchbay/plugin.hpp"

namespace patchbay {
namespace detail {

template <class T>
struct DeviceTable {
    static T& value(void* self) { return static_cast<Box<T>*>(self)->value; }
    static pb_status info(void* self, pb_device_info* out) {
        return enter<T>(self, [&](T& t) { *out = t.info(); });
    }
    static pb_status alloc(void* self, uint64_t bytes, void** out) {
        return enter<T>(self, [&](T& t) { *out = t.alloc(bytes); });
    }
    static void free(void* self, void* memory) noexcept { value(self).free(memory); }
    static pb_status to_device(void* self, void* to, const void* from, uint64_t bytes) {
        return enter<T>(self, [&](T& t) { t.to_device(to, from, bytes); });
    }
    static pb_status to_host(void* self, void* to, const void* from, uint64_t bytes) {
        return enter<T>(self, [&](T& t) { t.to_host(to, from, bytes); });
    }
    static pb_status prepare(void* self, const pb_weight_source* source, pb_weight** out) {
        return enter<T>(self, [&](T& t) { *out = t.prepare(*source); });
    }
    static void release(void* self, pb_weight* w) noexcept { value(self).release(w); }
    static uint64_t weight_bytes(void* self, const pb_weight* w) noexcept { return value(self).weight_bytes(w); }
    static const pb_ops* ops(void* self) noexcept { return value(self).ops(); }
    static pb_status begin_step(void* self) {
        return enter<T>(self, [&](T& t) { t.begin_step(); });
    }
    static pb_status end_step(void* self) {
        return enter<T>(self, [&](T& t) { t.end_step(); });
    }
    static pb_status copy_page(void* self, void* to, const void* from, uint64_t bytes) {
        return enter<T>(self, [&](T& t) { t.copy_page(to, from, bytes); });
    }
    static pb_status measure(void* self, pb_limit* out, uint32_t* count) {
        return enter<T>(self, [&](T& t) {
            if constexpr (requires { t.measure(); }) {
                const std::vector<pb_limit> limits = t.measure();
                *count = static_cast<uint32_t>(std::min<size_t>(limits.size(), *count));
                std::copy_n(limits.begin(), *count, out);
            }
        });
    }
    static void charge(void* self, const pb_cost* cost) noexcept {
        if constexpr (kCharges) value(self).charge(*cost);
    }
    static uint64_t charged_ns(void* self) noexcept {
        if constexpr (kCharges) return value(self).charged_ns();
        return 0;
    }
    static pb_status graph_begin(void* self) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kGraphs) t.graph_begin();
        });
    }
    static pb_status graph_end(void* self, pb_graph** out) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kGraphs) *out = t.graph_end();
        });
    }
    static pb_status graph_launch(void* self, pb_graph* graph) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kGraphs) t.graph_launch(graph);
        });
    }
    static void graph_free(void* self, pb_graph* graph) noexcept {
        if constexpr (kGraphs) value(self).graph_free(graph);
    }
    static uint64_t graph_bytes(void* self, const pb_graph* graph) noexcept {
        if constexpr (kGraphs) return value(self).graph_bytes(graph);
        return 0;
    }
    static pb_status submit_step(void* self) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kSubmits) t.submit_step();
        });
    }
    static pb_status wait_step(void* self) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kSubmits) t.wait_step();
        });
    }
    static uint64_t host_ns(void* self) noexcept {
        if constexpr (kHost) return value(self).host_ns();
        return 0;
    }
    static pb_status connect(void* self, const pb_group* group) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kConnects) t.connect(*group);
        });
    }
    static void disconnect(void* self) noexcept {
        if constexpr (kConnects) value(self).disconnect();
    }
    static void* queue(void* self) noexcept {
        if constexpr (kQueue) return value(self).queue();
        return nullptr;
    }
    static pb_status to_host_async(void* self, void* to, const void* from, uint64_t bytes) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kLater) t.to_host_async(to, from, bytes);
        });
    }
    static pb_status host_alloc(void* self, uint64_t bytes, void** out) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kPages) *out = t.host_alloc(bytes);
        });
    }
    static void host_free(void* self, void* memory) noexcept {
        if constexpr (kPages) value(self).host_free(memory);
    }
    static pb_status page_to_host(void* self, void* to, const void* from, uint64_t bytes) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kPages) t.page_to_host(to, from, bytes);
        });
    }
    static pb_status page_to_device(void* self, void* to, const void* from, uint64_t bytes) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kPages) t.page_to_device(to, from, bytes);
        });
    }
    static constexpr bool kMeasure = requires(T t) { t.measure(); };
    static constexpr bool kCharges = requires(T t, const pb_cost& cost) {
        t.charge(cost);
        t.charged_ns();
    };
    static constexpr bool kGraphs = requires(T t, pb_graph* graph) {
        t.graph_begin();
        graph = t.graph_end();
        t.graph_launch(graph);
        t.graph_free(graph);
        t.graph_bytes(graph);
    };
    static constexpr bool kSubmits = requires(T t) {
        t.submit_step();
        t.wait_step();
    };
    static constexpr bool kQueue = requires(T t) { t.queue(); };
    static constexpr bool kLater =
        requires(T t, void* to, const void* from, uint64_t bytes) { t.to_host_async(to, from, bytes); };
    static constexpr bool kPages = requires(T t, void* to, const void* from, uint64_t bytes) {
        to = t.host_alloc(bytes);
        t.host_free(to);
        t.page_to_host(to, from, bytes);
        t.page_to_device(to, from, bytes);
    };
    static constexpr bool kHost = requires(T t) { t.host_ns(); };
    static constexpr bool kConnects = requires(T t, const pb_group& group) {
        t.connect(group);
        t.disconnect();
    };
    static constexpr pb_device table{sizeof(pb_device), 0, info, alloc, free, to_device, to_host, prepare,
                                     release, weight_bytes, ops, begin_step, end_step, copy_page,
                                     kMeasure ? measure : nullptr, kCharges ? charge : nullptr,
                                     kCharges ? charged_ns : nullptr, kGraphs ? graph_begin : nullptr,
                                     kGraphs ? graph_end : nullptr, kGraphs ? graph_launch : nullptr,
                                     kGraphs ? graph_free : nullptr, kGraphs ? graph_bytes : nullptr,
                                     kSubmits ? submit_step : nullptr, kSubmits ? wait_step : nullptr,
                                     kHost ? host_ns : nullptr,
                                     kConnects ? connect : nullptr, kConnects ? disconnect : nullptr,
                                     kQueue ? queue : nullptr, kLater ? to_host_async : nullptr,
                                     kPages ? host_alloc : nullptr, kPages ? host_free : nullptr,
                                     kPages ? page_to_host : nullptr, kPages ? page_to_device : nullptr};
};

}  // namespace detail

inline pb_limit limit(const char* name, const char* unit, double value) {
    pb_limit out{};
    std::snprintf(out.name, sizeof out.name, "%s", name);
    std::snprintf(out.unit, sizeof out.unit, "%s", unit);
    out.value = value;
    return out;
}

template <class T>
constexpr pb_component device(const About& about) {
    return detail::component<T>(PB_DEVICE, PB_DEVICE_DIGEST, about, &detail::DeviceTable<T>::table);
}

}  // namespace patchbay
