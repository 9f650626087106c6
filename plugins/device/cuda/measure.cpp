// What the GPU does at best, by the host's clock around work that takes much longer than its start.
#include <algorithm>
#include <cstdio>

#include "measure.hpp"

#include "kernels/cuda.hpp"
#include "patchbay/plugin.hpp"
#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

std::vector<pb_limit> measured_limits(Gpu& gpu, Staging& staging, Products& products, const HostClock& clock) {
    if (!clock) throw Error(PB_UNAVAILABLE, "measuring needs the host's clock");
    constexpr uint64_t kMaxBytes = uint64_t{2} << 30; // several times the L2
    constexpr int64_t kSide = 8192;
    const uint64_t bytes = std::min(kMaxBytes, gpu.memory().free / 4) / 4096 * 4096;
    if (bytes < (uint64_t{64} << 20)) throw Error(PB_UNAVAILABLE, "too little memory is free to measure with");
    std::vector<GpuMemory> taken;
    const auto get = [&](uint64_t size) {
        void* const memory = taken.emplace_back(gpu, size).data();
        check_cuda(cudaMemsetAsync(memory, 0, size, gpu.stream()), "zeroing memory");
        return memory;
    };
    // The best of five rounds of ten, per second.
    const auto rate = [&](double work, auto&& f) {
        double best = 0;
        for (int round = -1; round < 5; ++round) { // the first is to warm up
            gpu.wait();
            const uint64_t start = clock.now_ns();
            for (int i = 0; i < 10; ++i) f();
            gpu.wait();
            const double seconds = static_cast<double>(clock.now_ns() - start) / 1e9;
            if (round >= 0 && seconds > 0) best = std::max(best, 10 * work / seconds);
        }
        return best;
    };
    std::vector<pb_limit> out;
    const auto add = [&](const char* name, const char* unit, double value) { out.push_back(limit(name, unit, value)); };
    auto* const data = static_cast<uint8_t*>(get(bytes));
    add("memory_read", "B/s", rate(static_cast<double>(bytes), [&] {
            kernels::cuda::read_all(gpu.stream(), reinterpret_cast<float*>(data), data, static_cast<int64_t>(bytes));
        }));
    add("memory_copy", "B/s", rate(static_cast<double>(bytes), [&] { // read and written
            check_cuda(cudaMemcpyAsync(data, data + bytes / 2, bytes / 2, cudaMemcpyDeviceToDevice, gpu.stream()),
                       "a copy");
        }));
    for (const pb_dtype dtype : {pb_dtype{PB_BF16}, pb_dtype{PB_F32}}) {
        const int64_t side = dtype == PB_BF16 ? kSide : kSide / 4;
        const auto size = static_cast<uint64_t>(side * side * dtype_bytes(dtype));
        void *const x = get(size), *const w = get(size), *const y = get(size);
        std::vector<float> noise(static_cast<size_t>(side * side)); // zeros would cost less power, and run faster
        uint32_t state = 1;
        for (float& v : noise) v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 24) - 0.5f;
        for (void* to : {x, w}) {
            if (dtype == PB_F32) {
                staging.upload(to, noise.data(), size);
            } else {
                std::vector<uint16_t> halves(noise.size());
                std::transform(noise.begin(), noise.end(), halves.begin(), f32_to_bf16);
                staging.upload(to, halves.data(), size);
            }
        }
        const pb_tensor in = tensor(x, dtype, {side, side}), result = tensor(y, dtype, {side, side});
        const double flop = 2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
        add(dtype == PB_BF16 ? "matmul_bf16" : "matmul_f32", "FLOP/s", rate(flop, [&] {
                if (!products.multiply(result, in, {w, dtype, side, side, nullptr}))
                    throw Error(PB_FAILED, "cuBLASLt has no algorithm for a large product");
            }));
    }
    return out;
}

}  // namespace patchbay
