// The instructions that kernels use beyond plain CUDA C++, one function each; sm_80 and later. tests/unit/cuda has the
// same functions in C++.
#pragma once
#include <cstdint>
#include <utility>

#include "kernels/cuda.hpp"

namespace patchbay::kernels::cuda {

__device__ inline float bits_to_float(uint32_t bits) { return __uint_as_float(bits); }

__device__ inline uint32_t float_to_bits(float x) { return __float_as_uint(x); }
__device__ inline int leading_zeros(uint32_t x) { return __clz(int(x)); }

// 2^x, within 2 units of the last place; what is no normal number becomes 0.
__device__ inline float power_of_two(float x) {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}

// Adds to what lies in shared memory, whatever other threads do there. What was there before.
__device__ inline uint32_t add_shared(uint32_t* at, uint32_t value) { return atomicAdd(at, value); }
// By halves, which the hardware adds by itself: of 64 bits it only compares and swaps. It may be read after a barrier.
__device__ inline void add_shared(uint64_t* at, uint64_t value) {
    auto* const halves = reinterpret_cast<uint32_t*>(at);
    const auto low = static_cast<uint32_t>(value);
    const uint32_t carry = atomicAdd(halves, low) > ~low;
    if (const uint32_t high = static_cast<uint32_t>(value >> 32) + carry; high > 0) atomicAdd(halves + 1, high);
}

// Two floats to nearest even; `low` is in the low half. NaN stays NaN.
__device__ inline uint32_t pack_bf16(float low, float high) {
    uint32_t out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

// Rounded once each, however the compiler would fuse them.
__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float fused_multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline float quotient(float a, float b) { return __fdiv_rn(a, b); }

__device__ inline float shuffle_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
__device__ inline int shuffle_xor(int x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
__device__ inline void sync_warp() { __syncwarp(); }

// The block's dynamic shared memory, on a line of 128 bytes.
__device__ inline uint8_t* dynamic_shared() {
    extern __shared__ __align__(128) uint8_t memory[];
    return memory;
}

// d (16, 8) += a (16, 16) · b (16, 8), bf16 with f32 sums, over the warp.
__device__ inline void multiply_tile(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 × 8 matrices of 16-bit elements: lanes 8 i … 8 i + 7 give the addresses of matrix i's rows, of 16 bytes each.
__device__ inline void load_matrices(uint32_t (&out)[4], const void* row) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&out)[4], const void* row) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}

// 16 bytes from global to shared memory, both on lines of 16; zeros unless `wanted`, when `from` is not read, yet is an
// address of global memory.
__device__ inline void copy_async(void* to_shared, const void* from, bool wanted) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to_shared));
    const int bytes = wanted ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(address), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ inline void wait_copies() { // until at most kLeft groups are under way
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Starts a kernel; what went wrong is in cudaGetLastError().
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, Stream stream, A&&... args) {
    kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(stream)>>>(std::forward<A>(args)...);
}

inline void allow_shared(const void* kernel, size_t bytes) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

}  // namespace patchbay::kernels::cuda
