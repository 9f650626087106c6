#include "hardware.hpp"

#include <algorithm>

namespace patchbay {

constexpr double kSecond = 1e9; // ns

Hardware hardware_of(const Context& context) {
    const auto real = [&](const char* key) { return context.get<double>(key); };
    const double reached = real("compute_efficiency");
    return {
        .name = context.get<std::string>("hardware"),
        .bf16_per_ns = real("matmul_bf16") * reached / kSecond,
        .f32_per_ns = real("matmul_f32") * reached / kSecond,
        .i8_per_ns = real("matmul_i8") * reached / kSecond,
        .i4_per_ns = real("matmul_i4") * reached / kSecond,
        .fp8_per_ns = real("matmul_fp8") * reached / kSecond,
        .bytes_per_ns = real("memory_read") * real("memory_efficiency") / kSecond,
        .host_bytes_per_ns = real("host_bandwidth") / kSecond,
        .memory_bytes = context.get<uint64_t>("memory_bytes"),
        .alpha_ns = real("collective_latency_ns"),
        .beta_per_ns = real("collective_bandwidth") / kSecond,
        .launch_ns = real("launch_ns"),
        .graph_replay_ns = real("graph_replay_ns"),
        .graph_node_ns = real("graph_node_ns"),
        .graph_node_bytes = real("graph_node_bytes"),
        .step_overhead_ns = real("step_overhead_ns"),
    };
}

double Hardware::peak(pb_dtype dtype) const {
    if (dtype == PB_F32) return f32_per_ns;
    const double own = dtype == PB_I8 ? i8_per_ns : dtype == PB_I4 ? i4_per_ns : dtype == PB_FP8 ? fp8_per_ns : 0;
    return own > 0 ? own : bf16_per_ns;
}

double Hardware::ns_of(const Work& work) const {
    return std::max(work.flop / work.flop_per_ns, work.bytes / bytes_per_ns) + work.wire_ns;
}

double Hardware::ns_of(const pb_cost& cost) const {
    return std::max(static_cast<double>(cost.flop) / peak(cost.flop_dtype),
                    static_cast<double>(cost.read_bytes + cost.write_bytes) / bytes_per_ns) +
           cost.launches * (cost.in_graph ? graph_node_ns : launch_ns);
}

std::vector<pb_limit> Hardware::limits() const {
    std::vector<pb_limit> out;
    const auto add = [&](const char* name_of_limit, const char* unit, double per_ns) {
        if (per_ns > 0) out.push_back(limit(name_of_limit, unit, per_ns * kSecond));
    };
    add("memory_read", "B/s", bytes_per_ns);
    add("host_copy", "B/s", host_bytes_per_ns);
    add("matmul_f32", "FLOP/s", f32_per_ns);
    add("matmul_bf16", "FLOP/s", bf16_per_ns);
    add("matmul_i8", "OP/s", i8_per_ns);
    add("matmul_i4", "OP/s", i4_per_ns);
    add("matmul_fp8", "FLOP/s", fp8_per_ns);
    return out;
}

}  // namespace patchbay
