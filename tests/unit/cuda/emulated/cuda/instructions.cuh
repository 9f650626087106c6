// The functions of kernels/cuda/instructions.cuh in C++, by what PTX's manual says of each: over the emulation of
// cuda_runtime.h beside this.
#pragma once
#include <bit>
#include <cstdint>
#include <utility>

#include "kernels/cuda.hpp"

namespace patchbay::kernels::cuda {

inline float bits_to_float(uint32_t bits) { return std::bit_cast<float>(bits); }

inline uint32_t float_to_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline int leading_zeros(uint32_t x) { return std::countl_zero(x); }

inline float power_of_two(float x) { return std::exp2(x); }

template <class T>
T add_shared(T* at, T value) { // threads take turns only at barriers
    return std::exchange(*at, *at + value);
}

inline uint32_t pack_bf16(float low, float high) {
    const auto round = [](float f) -> uint32_t {
        const uint32_t x = std::bit_cast<uint32_t>(f);
        if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
        return (x + 0x7fffu + (x >> 16 & 1u)) >> 16;
    };
    return round(low) | round(high) << 16;
}

inline float product(float a, float b) { return a * b; }
inline float fused_multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
inline float quotient(float a, float b) { return a / b; }

inline uint32_t lane_index() { return threadIdx.x % 32; }

template <class T>
T show_and_read(T value, uint32_t from) {
    emulated::Warp& warp = emulated::warp();
    std::memcpy(warp.slots[lane_index()], &value, sizeof value);
    emulated::wait_at(warp.barrier);
    T out;
    std::memcpy(&out, warp.slots[from], sizeof out);
    emulated::wait_at(warp.barrier);
    return out;
}

inline float shuffle_xor(float x, int mask) { return show_and_read(x, lane_index() ^ uint32_t(mask)); }
inline int shuffle_xor(int x, int mask) { return show_and_read(x, lane_index() ^ uint32_t(mask)); }
inline void sync_warp() { emulated::wait_at(emulated::warp().barrier); }
inline uint8_t* dynamic_shared() { return emulated::block.shared_line; }

inline float bf16_half(uint32_t word, int half) { return bits_to_float(half ? word & 0xffff0000u : word << 16); }

inline void multiply_tile(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    emulated::Warp& warp = emulated::warp();
    const uint32_t lane = lane_index(), mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
    std::memcpy(warp.slots[lane], mine, sizeof mine);
    emulated::wait_at(warp.barrier);
    const auto a_at = [&](int row, int k) {
        return bf16_half(warp.slots[row % 8 * 4 + k % 8 / 2][(row >= 8 ? 1 : 0) + (k >= 8 ? 2 : 0)], k % 2);
    };
    const auto b_at = [&](int k, int column) {
        return bf16_half(warp.slots[column * 4 + k % 8 / 2][4 + (k >= 8 ? 1 : 0)], k % 2);
    };
    float out[4];
    for (int i = 0; i < 4; ++i) {
        const int row = int(lane) / 4 + (i >= 2 ? 8 : 0), column = int(lane) % 4 * 2 + i % 2;
        double sum = d[i];
        for (int k = 0; k < 16; ++k) sum += double{a_at(row, k)} * b_at(k, column);
        out[i] = static_cast<float>(sum);
    }
    emulated::wait_at(warp.barrier);
    std::memcpy(d, out, sizeof out);
}

inline void load_matrices_by(uint32_t (&out)[4], const void* row, bool transposed) {
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0) emulated::stop("a matrix row is not on a line of 16 bytes");
    emulated::Warp& warp = emulated::warp();
    const uint32_t lane = lane_index();
    std::memcpy(warp.slots[lane], &row, sizeof row);
    emulated::wait_at(warp.barrier);
    const auto element = [&](uint32_t matrix, uint32_t r, uint32_t c) -> uint32_t {
        const uint8_t* address;
        std::memcpy(&address, warp.slots[matrix * 8 + r], sizeof address);
        uint16_t value;
        std::memcpy(&value, address + c * 2, 2);
        return value;
    };
    for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t g = lane / 4, q = lane % 4 * 2;
        out[i] = transposed ? element(i, q, g) | element(i, q + 1, g) << 16
                            : element(i, g, q) | element(i, g, q + 1) << 16;
    }
    emulated::wait_at(warp.barrier);
}
inline void load_matrices(uint32_t (&out)[4], const void* row) { load_matrices_by(out, row, false); }
inline void load_matrices_transposed(uint32_t (&out)[4], const void* row) { load_matrices_by(out, row, true); }

// Copied no earlier than waited for.
inline void copy_async(void* to_shared, const void* from, bool wanted) {
    if (reinterpret_cast<uintptr_t>(to_shared) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
        emulated::stop("an asynchronous copy is not between lines of 16 bytes");
    emulated::block.fibers[emulated::block.current].open.push_back({to_shared, wanted ? from : nullptr});
}
inline void commit_copies() {
    emulated::Fiber& fiber = emulated::block.fibers[emulated::block.current];
    fiber.groups.push_back(std::exchange(fiber.open, {}));
}
template <int kLeft>
void wait_copies() {
    auto& groups = emulated::block.fibers[emulated::block.current].groups;
    while (groups.size() > kLeft) {
        emulated::perform(groups.front());
        groups.erase(groups.begin());
    }
}

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 threads, size_t shared_bytes, Stream, A&&... args) {
    emulated::run_grid(grid, threads, shared_bytes, [&] { kernel(args...); });
}

inline void allow_shared(const void*, size_t bytes) {
    if (bytes > 227 * 1024) emulated::stop("no block has so much shared memory");
}

}  // namespace patchbay::kernels::cuda
