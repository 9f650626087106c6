// What every CUDA kernel here is written over: element types, rows of tensors, reductions over a warp and a block.
// Kernels use what is here, in instructions.cuh, and thread indices and barriers, and nothing else of CUDA: tests
// compile them as C++ over their own cuda_runtime.h and cuda/instructions.cuh, and run them without a GPU.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/instructions.cuh"
#include "kernels/cuda.hpp"

namespace patchbay::kernels::cuda {

constexpr int kWarp = 32;

struct Bf16 {
    uint16_t bits;
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) { return bits_to_float(static_cast<uint32_t>(x.bits) << 16); }

template <class T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
    return x;
}
template <>
__device__ inline Bf16 from_float<Bf16>(float x) {
    return {static_cast<uint16_t>(pack_bf16(x, 0.f) & 0xffffu)};
}

// Row r of a tensor of rank 2 (rows, n), or of rank 3 (rows / heads, heads, n) seen as rows.
template <class T>
struct RowsOf {
    T* data;
    int64_t outer, inner; // strides in elements
    int32_t heads;        // 1: rank 2
    __device__ T* row(int64_t r) const {
        return heads == 1 ? data + r * outer : data + r / heads * outer + r % heads * inner;
    }
};

template <class T>
RowsOf<T> rows_of(const pb_tensor& t) {
    return {static_cast<T*>(t.data), t.strides[0], t.rank == 3 ? t.strides[1] : 0,
            t.rank == 3 ? static_cast<int32_t>(t.shape[1]) : 1};
}

inline int64_t row_count(const pb_tensor& t) { return t.rank == 3 ? t.shape[0] * t.shape[1] : t.shape[0]; }
inline int64_t row_width(const pb_tensor& t) { return t.shape[t.rank - 1]; }

__device__ inline float warp_sum(float x) {
    for (int offset = kWarp / 2; offset > 0; offset /= 2) x += shuffle_xor(x, offset);
    return x;
}

// The sum over a block of whole warps, at most 32, for every thread. `shared`: 33 floats.
__device__ inline float block_sum(float x, float* shared) {
    const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp, warps = int(blockDim.x) / kWarp;
    x = warp_sum(x);
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    if (warp == 0) {
        const float sum = warp_sum(lane < warps ? shared[lane] : 0.f);
        if (lane == 0) shared[32] = sum;
    }
    __syncthreads();
    const float sum = shared[32];
    __syncthreads(); // `shared` may be used again
    return sum;
}

// Calls f with a value of the element type of `dtype`, F32 or BF16: the caller has checked that it is one of them.
template <class F>
void with_type(pb_dtype dtype, F&& f) {
    if (dtype == PB_BF16) f(Bf16{});
    else f(float{});
}

// Elements in a row that a thread takes at a time: together where they lie on lines of 16 bytes, else one by one, so
// that what is made of them does not depend on where they lie.
constexpr int kEach = 8;
template <class T>
struct Elements {
    alignas(16) T values[kEach];
};
template <class T>
__host__ __device__ inline bool on_a_line(const T* p) {
    return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}
// The first `left`, or kEach if there are more; the others are zero.
template <class T>
__device__ inline Elements<T> read(const T* from, int64_t left, bool lined) {
    if (lined && left >= kEach) return *reinterpret_cast<const Elements<T>*>(from);
    Elements<T> out{};
    for (int j = 0; j < kEach && j < left; ++j) out.values[j] = from[j];
    return out;
}
template <class T>
__device__ inline void write(T* to, const Elements<T>& elements, int64_t left, bool lined) {
    if (lined && left >= kEach) {
        *reinterpret_cast<Elements<T>*>(to) = elements;
        return;
    }
    for (int j = 0; j < kEach && j < left; ++j) to[j] = elements.values[j];
}
// Whether all rows of a tensor begin on lines.
inline bool lined(const pb_tensor& t) {
    const auto whole = [](int64_t elements) { return elements % kEach == 0; };
    return on_a_line(static_cast<const char*>(t.data)) && whole(t.strides[0]) && (t.rank == 2 || whole(t.strides[1]));
}
inline int64_t parts(int64_t n) { return (n + kEach - 1) / kEach; } // of a row of n

inline uint32_t blocks_for(int64_t items, int64_t per_block) {
    constexpr int64_t kMaxBlocks = 1 << 20; // kernels stride over what a grid does not cover
    const int64_t blocks = (items + per_block - 1) / per_block;
    return static_cast<uint32_t>(blocks < 1 ? 1 : blocks > kMaxBlocks ? kMaxBlocks : blocks);
}

// Threads for a block that works through a row of n: whole warps, few for short rows.
inline constexpr uint32_t kRowThreads = 512; // of threads_for() at most
inline uint32_t threads_for(int64_t n) { return n <= 256 ? 32 : n <= 2048 ? 128 : kRowThreads; }

}  // namespace patchbay::kernels::cuda
