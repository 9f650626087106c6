// What each op starts once its arguments are checked: kernels, in the device's stream. Values of ids are checked there.
#include "cuda.hpp"
#include "patchbay/sdk/checked_ops.hpp"

namespace patchbay {
namespace {

namespace cuda = kernels::cuda;

constexpr int64_t kFewTokens = 2; // cuBLASLt reads a matrix somewhat slower for so few: measured on an H100

cuda::Stream stream(const CudaDevice& d) { return static_cast<cuda::Stream>(d.queue()); }
const int32_t* ints(const pb_tensor* t) { return static_cast<const int32_t*>(t->data); }

// By cuBLASLt; false where it has no algorithm. With a bias, sums stay f32 until it is added: they are rounded once.
bool multiply(CudaDevice& d, const pb_tensor& out, const pb_tensor& x, const cuda::DeviceMatrix& matrix) {
    pb_tensor sums = out;
    if (matrix.bias && out.dtype != PB_F32) { // x is not in the scratch memory then: it has the dtype of out
        void* const memory = d.scratch(static_cast<uint64_t>(elements(out)) * sizeof(float));
        sums = tensor(memory, PB_F32, {out.shape[0], out.shape[1]}, out.device);
    }
    if (!d.products().multiply(sums, x, matrix)) return false;
    if (matrix.bias) cuda::add_bias(stream(d), out, sums, matrix.bias);
    return true;
}

struct CudaKernels {
    static void embedding(CudaDevice& d, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
        cuda::embedding(stream(d), *out, table->matrix, ints(ids), d.kernel_fault());
    }
    // bf16 weights beside f32 activations: x is rounded to bf16, and the result is not that of f32 weights. f32 weights
    // beside bf16 activations are multiplied as they are by a plain kernel, slowly, since cuBLASLt takes one dtype.
    static void linear(CudaDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
        if (x->shape[0] == 0) return;
        pb_tensor in = *x;
        if (x->dtype == PB_F32 && w->matrix.dtype == PB_BF16) {
            void* const rounded = d.scratch(static_cast<uint64_t>(elements(*x)) * sizeof(uint16_t));
            cuda::to_bf16(stream(d), static_cast<uint16_t*>(rounded), *x);
            in = tensor(rounded, PB_BF16, {x->shape[0], x->shape[1]}, x->device);
        }
        const bool few = in.shape[0] <= kFewTokens && !d.batch_invariant();
        if (few || in.dtype != w->matrix.dtype || !multiply(d, *out, in, w->matrix))
            cuda::plain_linear(stream(d), *out, in, w->matrix);
    }
    static void rms_norm(CudaDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
        cuda::rms_norm(stream(d), *out, *x, w->vector, eps);
    }
    static void add_rms_norm(CudaDevice& d, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x,
                             const pb_weight* w, float eps) {
        cuda::add_rms_norm(stream(d), *out, *residual, *x, w->vector, eps);
    }
    static void layer_norm(CudaDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                           const pb_weight* b, float eps) {
        cuda::layer_norm(stream(d), *out, *x, w->vector, b->vector, eps);
    }
    static void rope(CudaDevice& d, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq,
                     float scale) {
        cuda::rope(stream(d), *x, ints(positions), inv_freq->vector, inv_freq->vector_size, scale);
    }
    static void silu_mul(CudaDevice& d, const pb_tensor* out, const pb_tensor* gate_up) {
        cuda::silu_mul(stream(d), *out, *gate_up);
    }
    static void gelu_tanh_mul(CudaDevice& d, const pb_tensor* out, const pb_tensor* gate_up) {
        cuda::gelu_tanh_mul(stream(d), *out, *gate_up);
    }
    static void add(CudaDevice& d, const pb_tensor* a, const pb_tensor* b) { cuda::add(stream(d), *a, *b); }
    static void gather_rows(CudaDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
        cuda::gather_rows(stream(d), *out, *x, ints(rows), d.kernel_fault());
    }
    static void relu(CudaDevice& d, const pb_tensor* x) { cuda::relu(stream(d), *x); }
    static void gelu_tanh(CudaDevice& d, const pb_tensor* x) { cuda::gelu_tanh(stream(d), *x); }
    static void silu(CudaDevice& d, const pb_tensor* x) { cuda::silu(stream(d), *x); }
    static void gelu_erf(CudaDevice& d, const pb_tensor* x) { cuda::gelu_erf(stream(d), *x); }
    static void gelu_erf_mul(CudaDevice& d, const pb_tensor* out, const pb_tensor* gate_up) {
        cuda::gelu_erf_mul(stream(d), *out, *gate_up);
    }
    static void swiglu_oai(CudaDevice& d, const pb_tensor* out, const pb_tensor* gate_up, float alpha, float limit) {
        cuda::swiglu_oai(stream(d), *out, *gate_up, alpha, limit);
    }
    static void sigmoid_mul(CudaDevice& d, const pb_tensor* x, const pb_tensor* gate) {
        cuda::sigmoid_mul(stream(d), *x, *gate);
    }
    static void scale(CudaDevice& d, const pb_tensor* x, float factor) { cuda::scale(stream(d), *x, factor); }
    static void soft_cap(CudaDevice& d, const pb_tensor* x, float cap) { cuda::soft_cap(stream(d), *x, cap); }
    static void top_k(CudaDevice& d, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits,
                      uint32_t normalise) {
        cuda::top_k(stream(d), *ids, *weights, *logits, normalise != 0);
    }
    static void expert_linear(CudaDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                              uint32_t count, const pb_tensor* ids) {
        const cuda::DeviceMatrix& first = experts[0]->matrix;
        for (uint32_t e = 1; e < count; ++e)
            if (experts[e]->matrix.dtype != first.dtype)
                throw Mismatch{"expert " + std::to_string(e) + " has another dtype than expert 0"};
        cuda::expert_linear(stream(d), *out, *x,
                            {d.expert_table(experts, count), count, first.dtype, first.rows, first.cols}, ints(ids),
                            d.kernel_fault());
    }
    static void weighted_sum(CudaDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
        cuda::weighted_sum(stream(d), *out, *x, *weights);
    }
    static void fill_placeholders(CudaDevice& d, const pb_tensor* ids, const pb_tensor* sampled) {
        cuda::fill_placeholders(stream(d), static_cast<int32_t*>(ids->data), ids->shape[0], ints(sampled),
                            sampled->shape[0],
                          d.kernel_fault());
    }
};

// x of each rank, one after the other, in scratch memory.
void* gathered(CudaDevice& d, const pb_tensor& x) {
    const int64_t count = elements(x);
    void* const memory = d.scratch(static_cast<uint64_t>(count * dtype_bytes(x.dtype)) * d.ranks().size());
    d.ranks().all_gather(memory, x.data, count, x.dtype);
    return memory;
}

struct Collectives {
    // Gathered, then added in the order of ranks on each of them: the same bits on all, whatever else is in the batch.
    // NCCL's own sum adds in an order that depends on where an element lies.
    static void all_reduce(CudaDevice& d, const pb_tensor* x) {
        if (elements(*x) > 0) cuda::sum_ranks(stream(d), *x, gathered(d, *x), d.ranks().size());
    }
    static void all_gather(CudaDevice& d, const pb_tensor* out, const pb_tensor* x) {
        if (elements(*x) > 0) cuda::lay_side_by_side(stream(d), *out, gathered(d, *x), d.ranks().size());
    }
};

}  // namespace

void add_collectives(pb_ops& ops) { set_checked_ops<CudaDevice, Collectives>(ops); }
pb_ops cuda_ops(CudaDevice& device) { return checked_ops<CudaDevice, CudaKernels>(device); }

}  // namespace patchbay
