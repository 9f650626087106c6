// A healthy device with graphs that follows pb_device to the letter: it records only what has run before, with the same
// weights and shapes, like a device that allocates memory or chooses kernels when an op first runs.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plain_loops.hpp"

struct pb_graph {
    std::vector<std::function<void()>> ops;
};

namespace specimens {

class Recorder : public Loops {
  public:
    Recorder() {
        ops_.ctx = this;
        ops_.embedding = Op<embedding>::call;
        ops_.linear = Op<linear>::call;
        ops_.rms_norm = Op<rms_norm>::call;
        ops_.add_rms_norm = Op<add_rms_norm>::call;
        ops_.rope = Op<rope>::call;
        ops_.silu_mul = Op<silu_mul>::call;
        ops_.add = Op<add>::call;
        ops_.gather_rows = Op<gather_rows>::call;
    }
    pb_device_info info() const {
        pb_device_info i = Loops::info();
        i.host_memory = 0;
        return i;
    }
    void graph_begin() {
        recorded_ = std::make_unique<pb_graph>();
        fault_.clear();
    }
    pb_graph* graph_end() {
        auto graph = std::exchange(recorded_, nullptr);
        if (!fault_.empty()) throw patchbay::Error(PB_FAILED, fault_);
        return graph.release();
    }
    void graph_launch(pb_graph* graph) {
        for (const auto& op : graph->ops) op();
    }
    void graph_free(pb_graph* graph) noexcept { delete graph; }
    uint64_t graph_bytes(const pb_graph* graph) const noexcept { return 1 + graph->ops.size(); }

  protected:
    // An argument as it is kept: a tensor's struct is the caller's.
    struct Tensor {
        pb_tensor value;
        operator const pb_tensor*() const { return &value; }
    };
    static Tensor kept(const pb_tensor* t) { return {*t}; }
    template <class T>
    static T kept(T value) {
        return value;
    }
    static std::string name(const pb_tensor* t) {
        return std::to_string(t->shape[0]) + "x" + std::to_string(t->shape[t->rank - 1]) + " ";
    }
    static std::string name(const pb_weight* w) { return std::to_string(reinterpret_cast<uintptr_t>(w)) + " "; }
    static std::string name(const pb_weight* const* experts) { return name(experts[0]); }
    template <class Number>
    static std::string name(Number) {
        return "";
    }

    template <auto kPlain, class Signature = decltype(kPlain)>
    struct Op;
    template <auto kPlain, class... A>
    struct Op<kPlain, void (*)(void*, A...)> {
        static void call(void* ctx, A... args) {
            auto& device = *static_cast<Recorder*>(ctx);
            const auto key = std::pair(reinterpret_cast<const void*>(kPlain), (std::string() + ... + name(args)));
            if (!device.recorded_) {
                device.ran_.insert(key);
                return kPlain(nullptr, args...);
            }
            if (!device.ran_.contains(key)) device.fault_ = "an op is recorded that has not run before";
            device.recorded_->ops.push_back([held = std::tuple(kept(args)...)] {
                std::apply([](const auto&... each) { kPlain(nullptr, each...); }, held);
            });
        }
    };

  private:
    std::unique_ptr<pb_graph> recorded_; // while it records
    std::set<std::pair<const void*, std::string>> ran_;
    std::string fault_;
};

}  // namespace specimens
