// The CUDA kernels as functions: each starts work on a stream and returns; a failed start is in cudaGetLastError().
// Used by the CUDA device plugin. Tensors are of device memory, F32 or BF16, of rank 2 or 3 with unit inner stride;
// shapes and dtypes are the caller's to check. No header of the CUDA Toolkit is needed to include this.
#pragma once
#include <cstdint>

#include "patchbay/abi/tensor.h"

namespace patchbay::kernels::cuda {

using Stream = void*; // a cudaStream_t

// Faults that only kernels can see: an index out of range. Written to device memory, which is copied when a step
// ends; 0: none.
enum class KernelFault : int32_t { kNone = 0, kEmbeddingId, kGatherRow, kExpertId, kTakenToken };

struct DeviceMatrix { // a prepared weight (rows, cols), dense, in device memory
    const void* data = nullptr;
    pb_dtype dtype = PB_F32;
    int64_t rows = 0, cols = 0;
    const float* bias = nullptr; // (rows), or nullptr
};

// The ops of patchbay/abi/device.h. Sums are f32, or f32 in a tree whose shape follows from the width alone.
void embedding(Stream, const pb_tensor& out, const DeviceMatrix& table, const int32_t* ids, int32_t* fault);
void gather_rows(Stream, const pb_tensor& out, const pb_tensor& x, const int32_t* rows, int32_t* fault);
void fill_placeholders(Stream, int32_t* ids, int64_t count, const int32_t* sampled, int64_t rows, int32_t* fault);
void rms_norm(Stream, const pb_tensor& out, const pb_tensor& x, const float* w, float eps);
void add_rms_norm(Stream, const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x, const float* w,
                  float eps);
void layer_norm(Stream, const pb_tensor& out, const pb_tensor& x, const float* w, const float* b, float eps);
void rope(Stream, const pb_tensor& x, const int32_t* positions, const float* inv_freq, int64_t half, float scale);
void silu_mul(Stream, const pb_tensor& out, const pb_tensor& gate_up);
void gelu_tanh_mul(Stream, const pb_tensor& out, const pb_tensor& gate_up);
void add(Stream, const pb_tensor& a, const pb_tensor& b);
void relu(Stream, const pb_tensor& x);
void gelu_tanh(Stream, const pb_tensor& x);
void silu(Stream, const pb_tensor& x);
void gelu_erf(Stream, const pb_tensor& x);
void gelu_erf_mul(Stream, const pb_tensor& out, const pb_tensor& gate_up);
void sigmoid_mul(Stream, const pb_tensor& x, const pb_tensor& gate);
void swiglu_oai(Stream, const pb_tensor& out, const pb_tensor& gate_up, float alpha, float limit);
void scale(Stream, const pb_tensor& x, float factor);
void soft_cap(Stream, const pb_tensor& x, float cap);
void top_k(Stream, const pb_tensor& ids, const pb_tensor& weights, const pb_tensor& logits, bool sum_to_one);
void weighted_sum(Stream, const pb_tensor& out, const pb_tensor& x, const pb_tensor& weights);

// out (T, rows) = x (T, cols) · wᵀ + bias, any dtypes, one order over cols for any T: for products that the library
// does not support, and for one or two tokens, where it reads w as fast as the memory gives it.
void plain_linear(Stream, const pb_tensor& out, const pb_tensor& x, const DeviceMatrix& w);
struct ExpertTable { // matrices of one shape and dtype
    const DeviceMatrix* matrices = nullptr; // (count), in device memory
    uint32_t count = 0;
    pb_dtype dtype = PB_F32;
    int64_t rows = 0, cols = 0;
};
// ids (T, k) i32, dense
void expert_linear(Stream, const pb_tensor& out, const pb_tensor& x, const ExpertTable&, const int32_t* ids,
                   int32_t* fault);
// out (T, n) = sums (T, n) F32 + bias (n), rounded once; sums may be out
void add_bias(Stream, const pb_tensor& out, const pb_tensor& sums, const float* bias);
void to_bf16(Stream, uint16_t* out, const pb_tensor& x);        // out dense, x (T, n) F32

struct Codes { // of pb_quant, in device memory
    const uint8_t* codes = nullptr;
    pb_dtype dtype = PB_I8; // I8, I4 or FP8
    int64_t rows = 0, cols = 0, group = 0;
    const float* scales = nullptr;
    const float* offsets = nullptr; // or nullptr
    const int32_t* order = nullptr; // or nullptr
};
void dequantise(Stream, void* out, pb_dtype dtype, const Codes&); // out (rows, cols), in the order of x's columns
void widen(Stream, float* out, const uint16_t* bf16, int64_t count);

// What ranks gathered, dense (ranks, T, n): out (T, n) is its sum, rank 0 first; or out (T, ranks · n) is its rows side
// by side.
void sum_ranks(Stream, const pb_tensor& out, const void* gathered, uint32_t ranks);
void lay_side_by_side(Stream, const pb_tensor& out, const void* gathered, uint32_t ranks);

void read_all(Stream, float* out, const void* data, int64_t bytes); // sums of 16-byte words, to measure bandwidth

}  // namespace patchbay::kernels::cuda
