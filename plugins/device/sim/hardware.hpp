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
    explicit Hardware(const Context&);

    double peak(pb_dtype) const; // FLOP/ns
    // Memory traffic and multiplications overlap. Without launches.
    double ns_of(const Work&) const;
    double ns_of(const pb_cost&) const; // with its launches
    // In a ring, where each rank sends `steps` messages of `bytes` after one another.
    double wire_ns(double steps, double bytes) const { return steps * (alpha_ns + bytes / beta_per_ns); }
    std::vector<pb_limit> limits() const;

    std::string name;
    double bf16_per_ns, f32_per_ns, i8_per_ns, bytes_per_ns;
    double host_bytes_per_ns;     // 0: device and host share one memory
    uint64_t memory_bytes;
    double alpha_ns, beta_per_ns; // of a message between ranks; beta: bytes per ns, 0: none
    double launch_ns, graph_replay_ns, graph_node_ns, graph_node_bytes, step_overhead_ns;
};

}  // namespace patchbay
