// Simulated hardware: memory that is counted and not taken, ops that cost time and compute nothing. One per
// engine.
#pragma once
#include <vector>

#include "graphs.hpp"
#include "memory.hpp"
#include "ops.hpp"
#include "page_copies.hpp"
#include "patchbay/sdk/device.hpp"
#include "step_faults.hpp"
#include "step_time.hpp"
#include "weights.hpp"

namespace patchbay {

// sdk/device.hpp finds the functions of a device in its bases, too.
class SimDevice : public StepTime,
                  public StepFaults,
                  public CountedMemory,
                  public PageCopies,
                  public Weights,
                  public Graphs {
  public:
    static constexpr double kMaxRate = 1e21;
    static constexpr const char* kDtypes[] = {"bf16", "f32", nullptr};
    static constexpr pb_param kParams[] = {
        param::text("hardware", "hardware", "what is simulated, for the record"),
        param::real("matmul_bf16", nullptr, 1e6, kMaxRate, "FLOP/s", "peak with bf16 weights; a multiply-add is two"),
        param::real("matmul_f32", nullptr, 1e6, kMaxRate, "FLOP/s",
                    "the same with f32; of attention, if activations are"),
        param::real("matmul_i8", "0", 0, kMaxRate, "OP/s",
                    "peak with int8 weights; 0: they are widened and take matmul_bf16"),
        param::real("matmul_i4", "0", 0, kMaxRate, "OP/s", "the same with int4 weights"),
        param::real("matmul_fp8", "0", 0, kMaxRate, "FLOP/s", "the same with fp8 weights"),
        param::real("memory_read", nullptr, 1e6, kMaxRate, "B/s", "bandwidth of its memory, for writes too"),
        param::real("host_bandwidth", "0", 0, kMaxRate, "B/s",
                    "between its memory and the host's, each way; 0: they are the same, and memory_read counts"),
        param::integer("memory_bytes", nullptr, 1 << 20, 1e18, "bytes", "memory for weights, KV and activations"),
        param::real("launch_ns", "0", 0, 1e9, "ns", "time to start an op, which nothing hides"),
        param::real("graph_replay_ns", "0", 0, 1e9, "ns", "time to start a captured graph, which nothing hides"),
        param::real("graph_node_ns", "0", 0, 1e9, "ns", "between two ops of a graph, in place of launch_ns"),
        param::real("graph_node_bytes", "0", 0, 1e9, "bytes", "memory that a graph takes for each of its ops"),
        param::real("collective_latency_ns", "0", 0, 1e9, "ns", "α: of a message from a rank to the next one"),
        param::real("collective_bandwidth", "0", 0, kMaxRate, "B/s",
                    "β: from a rank to the next one, while another comes in; 0: there is one rank"),
        param::real("step_overhead_ns", "0", 0, 1e9, "ns", "of the host for a step: scheduler, sampler and copies"),
        param::real("compute_efficiency", "1", 0.01, 1, "", "share of the peaks that ops reach"),
        param::real("memory_efficiency", "1", 0.01, 1, "", "share of the bandwidth that ops reach"),
        param::choice("activation_dtype", "bf16", kDtypes, "of activations"),
    };

    explicit SimDevice(const Context&);
    SimDevice(const SimDevice&) = delete;
    SimDevice& operator=(const SimDevice&) = delete;

    pb_device_info info() const;
    const pb_ops* ops() const { return &ops_; }
    std::vector<pb_limit> measure() const { return hardware().limits(); } // the given figures
    void begin_step();
    void connect(const pb_group&); // simulated ranks: charges this rank's share, and the exchange
    void disconnect() noexcept {}

  private:
    OpContext context_;
    pb_ops ops_;
};

}  // namespace patchbay
