// The fast CPU kernels: activations f32, weights f32, bf16, fp8 or whole numbers packed once. For each ISA level an
// element of a result is bitwise the same whatever else is in the batch and however many threads run: work is split by
// rows and output columns only, and each element is summed over K in one order. Used by the CPU device plugin. The
// caller checks shapes.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/cpu_isa.hpp"
#include "kernels/packed_matrix.hpp"
#include "patchbay/abi/tensor.h"

namespace patchbay::kernels {

// Memory for vectors and tiles: on a 64-byte line; from 2 MiB on in huge pages where the system gives them. Not zeroed.
struct AlignedFree { void operator()(void* p) const; };
using AlignedBytes = std::unique_ptr<uint8_t[], AlignedFree>;
AlignedBytes allocate_aligned(uint64_t bytes); // throws std::bad_alloc

struct Workers { // the workers: the host's pool, or the calling thread alone
    uint32_t threads = 1;
    void* ctx = nullptr;
    // task(arg, i) for each i in [0, count), returns when all are done; nullptr if threads is 1
    void (*run)(void* ctx, uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) = nullptr;
};

// Scratch memory of a call, kept for the next one.
class Scratch {
  public:
    void* at_least(uint64_t bytes); // 64-byte aligned; the old contents are lost. Throws std::bad_alloc.

  private:
    AlignedBytes memory_;
    uint64_t bytes_ = 0;
};

// Memory of matrices: those smaller than a huge page share huge pages. A page lives as long as any matrix
// in it, also after this object.
class MatrixMemory {
  public:
    std::shared_ptr<uint8_t[]> take(uint64_t bytes); // on a 64-byte line, not zeroed. Throws std::bad_alloc. [any]

  private:
    std::mutex turn_;
    std::shared_ptr<uint8_t[]> shared_;
    uint64_t taken_ = 0; // of shared_, in bytes
};

struct Machine {
    Isa isa = Isa::Plain;
    Workers workers;
    Scratch* scratch = nullptr; // for one call at a time; nullptr: each allocates its own
    MatrixMemory* matrices = nullptr; // for packing; likewise
};

// The ops of patchbay/abi/device.h, f32; rows may be strided, the inner stride is 1.
void linear(const Machine&, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w);
void rms_norm(const Machine&, const pb_tensor& out, const pb_tensor& x, const float* w, float eps);
void add_rms_norm(const Machine&, const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x, const float* w,
                  float eps);
void rope(const Machine&, const pb_tensor& x, const int32_t* positions, const float* inv_freq, int64_t half,
          float scale);
void silu_mul(const Machine&, const pb_tensor& out, const pb_tensor& gate_up);
void add(const Machine&, const pb_tensor& a, const pb_tensor& b);
void embedding(const Machine&, const pb_tensor& out, const PackedMatrix& table, const int32_t* ids);
void gather_rows(const Machine&, const pb_tensor& out, const pb_tensor& x, const int32_t* rows);
void layer_norm(const Machine&, const pb_tensor& out, const pb_tensor& x, const float* w, const float* b, float eps);
void relu(const Machine&, const pb_tensor& x);
void gelu_tanh(const Machine&, const pb_tensor& x);
void gelu_tanh_mul(const Machine&, const pb_tensor& out, const pb_tensor& gate_up);
void silu(const Machine&, const pb_tensor& x);
void gelu_erf(const Machine&, const pb_tensor& x);
void gelu_erf_mul(const Machine&, const pb_tensor& out, const pb_tensor& gate_up);
void sigmoid_mul(const Machine&, const pb_tensor& x, const pb_tensor& gate);
void swiglu_oai(const Machine&, const pb_tensor& out, const pb_tensor& gate_up, float alpha, float limit);
void scale(const Machine&, const pb_tensor& x, float factor);
void soft_cap(const Machine&, const pb_tensor& x, float cap);
enum class Gate { kSilu, kGeluTanh };
// out = down · (f(gate) · up). The same bits as linear, silu_mul or gelu_tanh_mul, linear; `rows`: memory for the
// intermediate result, not the machine's own.
void gated_mlp(const Machine&, Scratch& rows, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& gate_up,
               const PackedMatrix& down, Gate);
enum class Normalise { kNo, kSumToOne };
void top_k(const Machine&, const pb_tensor& ids, const pb_tensor& weights, const pb_tensor& logits, Normalise);
// ids (T, k) dense, each below count; `rows`: memory for the gathered rows, not the machine's own.
void expert_linear(const Machine&, Scratch& rows, const pb_tensor& out, const pb_tensor& x,
                   const PackedMatrix* const* experts, uint32_t count, const int32_t* ids);
void weighted_sum(const Machine&, const pb_tensor& out, const pb_tensor& x, const pb_tensor& weights);

struct States { // of the sequences of a batch: see pb_state of patchbay/abi/device.h
    uint8_t* data = nullptr;
    uint64_t page_stride = 0, offset = 0; // bytes; offset: of the op's own state in a page
    int64_t sequences = 0;
    const int32_t *pages = nullptr, *query_starts = nullptr, *is_first_chunk = nullptr;
};
struct Scan { // vectors (heads)
    const float *a_log = nullptr, *dt_bias = nullptr, *skip = nullptr;
    float dt_min = 0, dt_max = 0;
};
inline constexpr int64_t kMaxTaps = 16;
void causal_conv_silu(const Machine&, const pb_tensor& out, const pb_tensor& x, const float* w, const float* bias,
                      int64_t width, const States&); // width 2 to kMaxTaps
void ssm_scan(const Machine&, const pb_tensor& out, const pb_tensor& x, const pb_tensor& dt, const pb_tensor& b,
              const pb_tensor& c, const Scan&, const States&);

// The highest rate of the machine with all of the workers, measured by `now_ns`: the best of several rounds.
double measure_read(const Machine&, uint64_t (*now_ns)(void* ctx), void* ctx,
                    uint64_t bytes);  // B/s, over a buffer of this size
double measure_multiply_add(const Machine&, uint64_t (*now_ns)(void* ctx), void* ctx,
                            pb_dtype); // per s; F32, BF16 or I8

// out (n) = e^x. Relative error below 3e-7 for x in [−87.3, 88.3]; 0 below, saturated above, NaN stays NaN.
void exp(Isa, float* out, const float* x, int64_t n);

}  // namespace patchbay::kernels
