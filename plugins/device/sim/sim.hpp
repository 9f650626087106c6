// Simulated hardware: memory that is counted and not taken, ops that cost time and compute nothing. One per
// engine.
#pragma once
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "hardware.hpp"
#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/op_checks.hpp"

struct pb_weight {
    uint64_t uses = 0; // bit set of 1 << role
    int64_t rows = 0, cols = 0;
    uint64_t bytes = 0;
    double flop_per_ns = 0; // the highest rate of linear() with it
};

struct pb_graph {
    double ns = 0;       // of its ops, without launches
    uint64_t nodes = 0;  // ops
    uint64_t bytes = 0;  // of the memory
};

namespace patchbay {

class SimDevice {
  public:
    static constexpr double kMost = 1e21;
    static constexpr const char* kDtypes[] = {"bf16", "f32", nullptr};
    static constexpr pb_param kParams[] = {
        param::text("hardware", "hardware", "what is simulated, for the record"),
        param::real("matmul_bf16", nullptr, 1e6, kMost, "FLOP/s", "peak with bf16 weights; a multiply-add is two"),
        param::real("matmul_f32", nullptr, 1e6, kMost, "FLOP/s", "the same with f32; of attention, if activations are"),
        param::real("matmul_i8", "0", 0, kMost, "OP/s",
                    "peak with int8 and int4 weights; 0: they are widened and take matmul_bf16"),
        param::real("memory_read", nullptr, 1e6, kMost, "B/s", "bandwidth of its memory, for writes too"),
        param::real("host_bandwidth", "0", 0, kMost, "B/s",
                    "between its memory and the host's, each way; 0: they are the same, and memory_read counts"),
        param::integer("memory_bytes", nullptr, 1 << 20, 1e18, "bytes", "memory for weights, KV and activations"),
        param::real("launch_ns", "0", 0, 1e9, "ns", "time to start an op, which nothing hides"),
        param::real("graph_replay_ns", "0", 0, 1e9, "ns", "time to start a captured graph, which nothing hides"),
        param::real("graph_node_ns", "0", 0, 1e9, "ns", "between two ops of a graph, in place of launch_ns"),
        param::real("graph_node_bytes", "0", 0, 1e9, "bytes", "memory that a graph takes for each of its ops"),
        param::real("collective_latency_ns", "0", 0, 1e9, "ns", "α: of a message from a rank to the next one"),
        param::real("collective_bandwidth", "0", 0, kMost, "B/s",
                    "β: from a rank to the next one, while another comes in; 0: there is one rank"),
        param::real("step_overhead_ns", "0", 0, 1e9, "ns", "of the host for a step: scheduler, sampler and copies"),
        param::real("compute_efficiency", "1", 0.01, 1, "", "share of the peaks that ops reach"),
        param::real("memory_efficiency", "1", 0.01, 1, "", "share of the bandwidth that ops reach"),
        param::choice("activation_dtype", "bf16", kDtypes, "of activations"),
    };

    explicit SimDevice(const Context&);

    pb_device_info info() const;
    void* alloc(uint64_t bytes);
    void free(void* memory);
    void to_device(void*, const void*, uint64_t) const {}
    void to_host(void* to, const void* from, uint64_t bytes) const; // zeros
    pb_weight* prepare(const pb_weight_source&);
    void release(pb_weight*);
    uint64_t weight_bytes(const pb_weight* w) const { return w->bytes; }
    const pb_ops* ops() const { return &ops_; }
    void begin_step();
    void end_step(); // throws the step's first fault
    void copy_page(void* to, const void* from, uint64_t bytes);
    void* host_alloc(uint64_t) const { return nullptr; } // no memory: neither allocated nor counted
    void host_free(void*) const noexcept {}
    void page_to_host(void* to, const void* from, uint64_t bytes);
    void page_to_device(void* to, const void* from, uint64_t bytes) { page_to_host(to, from, bytes); }
    std::vector<pb_limit> measure() const; // the given figures
    void connect(const pb_group&); // simulated ranks: charges this rank's share, and the exchange
    void disconnect() noexcept {}
    void charge(const pb_cost&) noexcept;
    void graph_begin();
    pb_graph* graph_end();
    void graph_launch(pb_graph*);
    void graph_free(pb_graph*) noexcept;
    uint64_t graph_bytes(const pb_graph* graph) const noexcept { return graph->bytes; }
    void submit_step();
    void wait_step(); // throws the first fault of the oldest step that was submitted
    uint64_t host_ns() const noexcept { return static_cast<uint64_t>(std::llround(hardware_.step_overhead_ns)); }
    uint64_t charged_ns() const noexcept { return static_cast<uint64_t>(std::llround(charged_ns_)); }

    // For ops.cpp.
    OpChecks op_checks() const {
        return {activation_dtype_, false, ranks_,
                [](const pb_weight* w) { return WeightShape{w->uses, w->rows, w->cols}; }};
    }
    void charge(const Work&) noexcept; // with one launch
    uint32_t ranks() const { return ranks_; }
    const Hardware& hardware() const { return hardware_; }
    bool faulty() const { return !fault_.empty(); }
    void set_fault(std::string text) noexcept { fault_ = std::move(text); }

  private:
    void take(uint64_t bytes, const char* what);

    const Hardware hardware_;
    uint64_t used_bytes_ = 0;
    uint32_t ranks_ = 1;
    pb_dtype activation_dtype_;
    pb_ops ops_;
    double charged_ns_ = 0; // in this step
    std::string fault_;     // the first one of this step; later ops do nothing
    std::deque<std::string> submitted_;  // faults of steps that were not waited for yet
    std::unique_ptr<pb_graph> captured_; // so far; null: ops are charged at once
};

pb_ops sim_ops(SimDevice&);    // ops.cpp
void add_collectives(pb_ops&); // likewise

}  // namespace patchbay
