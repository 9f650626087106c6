// patchbay/sdk/device.hpp - a device as a class: the members below mirror pb_device, ops() returns its table. What is
// optional makes the extensions of abi/device.h; bool has_extension(std::string_view id) const says which of them this
// instance has, where that depends on the machine:
// std::vector<pb_limit> measure(); void graph_begin(), pb_graph* graph_end(), void graph_launch(pb_graph*),
// void graph_free(pb_graph*) noexcept, uint64_t graph_bytes(const pb_graph*) noexcept, all five or none; void
// submit_step() and wait_step(); void to_host_async(void*, const void*, uint64_t); void* host_alloc(uint64_t),
// void host_free(void*) noexcept, void page_to_host(void*, const void*, uint64_t) and page_to_device(…), all four or
// none; of a device that computes nothing, void charge(const pb_cost&) noexcept, uint64_t charged_ns() noexcept and
// uint64_t host_ns() noexcept; of one that may be a rank, void connect(const pb_group&) and void disconnect() noexcept;
// connect() comes again after a step that failed on one of the ranks.
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
        return enter<T>(self, [&](T& t) { copy_out(out, t.info()); });
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
        return enter<T>(self, [&](T& t) { *out = t.prepare(*Whole(source)); });
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
    static pb_status measure(void* self, pb_limit* out, uint32_t stride, uint32_t* count) {
        return enter<T>(self, [&](T& t) {
            if constexpr (requires { t.measure(); }) {
                const std::vector<pb_limit> limits = t.measure();
                *count = static_cast<uint32_t>(std::min<size_t>(limits.size(), *count));
                for (uint32_t i = 0; i < *count; ++i) write_row(out, i, stride, limits[i]);
            }
        });
    }
    static void charge(void* self, const pb_cost* cost) noexcept {
        if constexpr (kCharges) value(self).charge(*Whole(cost));
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
            if constexpr (kConnects) t.connect(*Whole(group));
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
                                     kQueue ? queue : nullptr};
    static constexpr pb_device_graphs graphs{sizeof(pb_device_graphs), 0,         graph_begin, graph_end,
                                             graph_launch,             graph_free, graph_bytes};
    static constexpr pb_device_async async{sizeof(pb_device_async), 0, submit_step, wait_step,
                                           kLater ? to_host_async : nullptr};
    static constexpr pb_device_collectives collectives{sizeof(pb_device_collectives), 0, connect, disconnect};
    static constexpr pb_device_offload offload{sizeof(pb_device_offload), 0,           host_alloc, host_free,
                                               page_to_host,              page_to_device};
    static constexpr pb_device_limits limits{sizeof(pb_device_limits), 0, measure};
    static constexpr pb_device_simulation simulation{sizeof(pb_device_simulation), 0, charge, charged_ns,
                                                     kHost ? host_ns : nullptr};
    static constexpr void add_extensions(auto& list) {
        list.add(kGraphs, PB_DEVICE_GRAPHS, PB_DEVICE_GRAPHS_REVISION, &graphs);
        list.add(kSubmits, PB_DEVICE_ASYNC, PB_DEVICE_ASYNC_REVISION, &async);
        list.add(kConnects, PB_DEVICE_COLLECTIVES, PB_DEVICE_COLLECTIVES_REVISION, &collectives);
        list.add(kPages, PB_DEVICE_OFFLOAD, PB_DEVICE_OFFLOAD_REVISION, &offload);
        list.add(kMeasure, PB_DEVICE_LIMITS, PB_DEVICE_LIMITS_REVISION, &limits);
        list.add(kCharges, PB_DEVICE_SIMULATION, PB_DEVICE_SIMULATION_REVISION, &simulation);
    }
    static_assert(kGraphs || !PB_HAS_MEMBER(T, graph_begin), "graphs need all five of graph_begin … graph_bytes");
    static_assert(kSubmits || (!PB_HAS_MEMBER(T, submit_step) && !PB_HAS_MEMBER(T, wait_step) && !kLater),
                  "steps in flight need both submit_step() and wait_step()");
    static_assert(kConnects || !PB_HAS_MEMBER(T, connect), "ranks need connect(const pb_group&) and disconnect()");
    static_assert(kPages || !PB_HAS_MEMBER(T, host_alloc), "pages in host memory need all four calls");
    static_assert(kCharges || (!PB_HAS_MEMBER(T, charge) && !kHost), "charge and charged_ns need each other");
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
    return detail::component<T, detail::DeviceTable<T>>(PB_DEVICE, PB_DEVICE_REVISION, about);
}

}  // namespace patchbay
