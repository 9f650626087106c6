#include "measure.hpp"

#include <algorithm>
#include <cstdio>

#include "kernels/host_memory.hpp"
#include "patchbay/sdk/device.hpp"

namespace patchbay {

std::vector<pb_limit> measured_limits(const kernels::Machine& machine, const HostClock& host_clock) {
    if (!host_clock) throw Error(PB_UNAVAILABLE, "measuring needs the host's clock");
    constexpr uint64_t kMaxBytes = uint64_t{1} << 30; // more than caches hold; at most a quarter of free memory
    const uint64_t bytes = std::min(kMaxBytes, kernels::host_memory().available / 4);
    const auto now = [](void* ctx) { return static_cast<const HostClock*>(ctx)->now_ns(); };
    void* const clock = const_cast<HostClock*>(&host_clock);
    std::vector<pb_limit> out;
    const auto add = [&](const char* name, const char* unit, double value) { out.push_back(limit(name, unit, value)); };
    add("memory_read", "B/s", kernels::measure_read(machine, now, clock, bytes));
    for (uint64_t held = 256 << 10; held <= 512 << 20 && held < bytes; held *= 2) { // from caches, as far as it fits
        char name[32];
        const bool mebi = held >= 1 << 20;
        std::snprintf(name, sizeof name, "memory_read_%llu%s",
                      static_cast<unsigned long long>(mebi ? held >> 20 : held >> 10), mebi ? "MiB" : "KiB");
        add(name, "B/s", kernels::measure_read(machine, now, clock, held));
    }
    add("matmul_f32", "FLOP/s", 2 * kernels::measure_multiply_add(machine, now, clock, PB_F32));
    add("matmul_bf16", "FLOP/s", 2 * kernels::measure_multiply_add(machine, now, clock, PB_BF16));
    const double bytes_multiplied = 2 * kernels::measure_multiply_add(machine, now, clock, PB_I8);
    add("matmul_i8", "OP/s", bytes_multiplied);
    add("matmul_i4", "OP/s", bytes_multiplied); // which become bytes in registers
    return out;
}

}  // namespace patchbay
