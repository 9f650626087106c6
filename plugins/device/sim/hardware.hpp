// The hardware that is simulated, as figures, and how long it takes for some work.
#pragma once
#include <string>
#include <vector>

#include "patchbay/sdk/device.hpp"

namespace patchbay {

struct Work { // of one op
    double flop = 0, flop_per_ns = 1;
    double bytes = 0; // read and written
    double wire_ns = 0; // between ranks; overlaps with neither
};

struct Hardware {
    double peak(pb_dtype) const; // FLOP/ns
    // Memory traffic and multiplications overlap. Without launches.
    double ns_of(const Work&) const;
    double ns_of(const pb_cost&) const; // with its launches
    // In a ring, where each rank sends `steps` messages of `bytes` after one another.
    double wire_ns(double steps, double bytes) const { return steps * (alpha_ns + bytes / beta_per_ns); }
    std::vector<pb_limit> limits() const;

    std::string name;
    double bf16_per_ns = 0, f32_per_ns = 0, i8_per_ns = 0, i4_per_ns = 0, fp8_per_ns = 0, bytes_per_ns = 0;
    double host_bytes_per_ns = 0; // 0: device and host share one memory
    uint64_t memory_bytes = 0;
    double alpha_ns = 0, beta_per_ns = 0; // of a message between ranks; beta: bytes per ns, 0: none
    double launch_ns = 0, graph_replay_ns = 0, graph_node_ns = 0, graph_node_bytes = 0, step_overhead_ns = 0;
};

Hardware hardware_of(const Context&); // by the settings of the component

}  // namespace patchbay
