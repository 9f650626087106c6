// What each op starts once its arguments are checked: kernels, in the device's stream. Values of ids are checked there.
#include "ops.hpp"

#include <algorithm>

#include "patchbay/sdk/checked_ops.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "weights.hpp"

namespace patchbay {
namespace {

namespace cuda = kernels::cuda;

constexpr int64_t kFewTokens = 2; // cuBLASLt reads a matrix somewhat slower for so few: measured on an H100

const int32_t* ints(const pb_tensor* t) { return static_cast<const int32_t*>(t->data); }

// By cuBLASLt; false where it has no algorithm. With a bias, sums stay f32 until it is added: they are rounded once.
bool multiply(OpContext& d, const pb_tensor& out, const pb_tensor& x, const cuda::DeviceMatrix& matrix) {
    pb_tensor sums = out;
    if (matrix.bias && out.dtype != PB_F32) { // x is not in the scratch memory then: it has the dtype of out
        void* const memory = d.scratch(static_cast<uint64_t>(elements(out)) * sizeof(float));
        sums = tensor(memory, PB_F32, {out.shape[0], out.shape[1]}, out.device);
    }
    if (!d.products().multiply(sums, x, matrix)) return false;
    if (matrix.bias) cuda::add_bias(d.stream(), out, sums, matrix.bias);
    return true;
}

// An op whose arguments are its kernel's.
const pb_tensor& passed(const pb_tensor* t) { return *t; }
const float* passed(const pb_weight* w) { return w->vector; }
float passed(float number) { return number; }
template <auto kernel>
constexpr auto kOp = [](OpContext& d, const auto&... args) { kernel(d.stream(), passed(args)...); };

struct CudaKernels {
    static constexpr auto rms_norm = kOp<cuda::rms_norm>;
    static constexpr auto add_rms_norm = kOp<cuda::add_rms_norm>;
    static constexpr auto layer_norm = kOp<cuda::layer_norm>;
    static constexpr auto silu_mul = kOp<cuda::silu_mul>;
    static constexpr auto gelu_tanh_mul = kOp<cuda::gelu_tanh_mul>;
    static constexpr auto add = kOp<cuda::add>;
    static constexpr auto relu = kOp<cuda::relu>;
    static constexpr auto gelu_tanh = kOp<cuda::gelu_tanh>;
    static constexpr auto silu = kOp<cuda::silu>;
    static constexpr auto gelu_erf = kOp<cuda::gelu_erf>;
    static constexpr auto gelu_erf_mul = kOp<cuda::gelu_erf_mul>;
    static constexpr auto swiglu_oai = kOp<cuda::swiglu_oai>;
    static constexpr auto sigmoid_mul = kOp<cuda::sigmoid_mul>;
    static constexpr auto scale = kOp<cuda::scale>;
    static constexpr auto soft_cap = kOp<cuda::soft_cap>;
    static constexpr auto weighted_sum = kOp<cuda::weighted_sum>;
    static void embedding(OpContext& d, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
        cuda::embedding(d.stream(), *out, table->matrix, ints(ids), d.kernel_fault());
    }
    // bf16 weights beside f32 activations: x is rounded to bf16, and the result is not that of f32 weights. f32 weights
    // beside bf16 activations are multiplied as they are by a plain kernel, slowly, since cuBLASLt takes one dtype.
    static void linear(OpContext& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
        if (x->shape[0] == 0) return;
        pb_tensor in = *x;
        if (x->dtype == PB_F32 && w->matrix.dtype == PB_BF16) {
            void* const rounded = d.scratch(static_cast<uint64_t>(elements(*x)) * sizeof(uint16_t));
            cuda::to_bf16(d.stream(), static_cast<uint16_t*>(rounded), *x);
            in = tensor(rounded, PB_BF16, {x->shape[0], x->shape[1]}, x->device);
        }
        const bool few = in.shape[0] <= kFewTokens && !d.batch_invariant();
        if (few || in.dtype != w->matrix.dtype || !multiply(d, *out, in, w->matrix))
            cuda::plain_linear(d.stream(), *out, in, w->matrix);
    }
    static void rope(OpContext& d, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq,
                     float scale) {
        cuda::rope(d.stream(), *x, ints(positions), inv_freq->vector, inv_freq->vector_size, scale);
    }
    static void gather_rows(OpContext& d, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
        cuda::gather_rows(d.stream(), *out, *x, ints(rows), d.kernel_fault());
    }
    static void top_k(OpContext& d, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits,
                      uint32_t normalise) {
        cuda::top_k(d.stream(), *ids, *weights, *logits, normalise != 0);
    }
    static void expert_linear(OpContext& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                              uint32_t count, const pb_tensor* ids) {
        const cuda::DeviceMatrix& first = experts[0]->matrix;
        for (uint32_t e = 1; e < count; ++e)
            if (experts[e]->matrix.dtype != first.dtype)
                throw Mismatch{"expert " + std::to_string(e) + " has another dtype than expert 0"};
        cuda::expert_linear(d.stream(), *out, *x,
                            {d.experts().table(experts, count), count, first.dtype, first.rows, first.cols}, ints(ids),
                            d.kernel_fault());
    }
    static void fill_placeholders(OpContext& d, const pb_tensor* ids, const pb_tensor* sampled) {
        cuda::fill_placeholders(d.stream(), static_cast<int32_t*>(ids->data), ids->shape[0], ints(sampled),
                            sampled->shape[0],
                          d.kernel_fault());
    }
};

// x of each rank, one after the other, in scratch memory.
void* gathered(OpContext& d, const pb_tensor& x) {
    const int64_t count = elements(x);
    void* const memory = d.scratch(static_cast<uint64_t>(count * dtype_bytes(x.dtype)) * d.ranks().size());
    d.ranks().all_gather(memory, x.data, count, x.dtype);
    return memory;
}

struct Collectives {
    // Gathered, then added in the order of ranks on each of them: the same bits on all, whatever else is in the batch.
    // NCCL's own sum adds in an order that depends on where an element lies.
    static void all_reduce(OpContext& d, const pb_tensor* x) {
        if (elements(*x) > 0) cuda::sum_ranks(d.stream(), *x, gathered(d, *x), d.ranks().size());
    }
    static void all_gather(OpContext& d, const pb_tensor* out, const pb_tensor* x) {
        if (elements(*x) > 0) cuda::lay_side_by_side(d.stream(), *out, gathered(d, *x), d.ranks().size());
    }
};

}  // namespace

OpChecks OpContext::op_checks() const { return {activation_dtype_, true, p_.connection.size(), shape_of}; }

void* OpContext::scratch(uint64_t bytes) {
    constexpr uint64_t kLeast = 1 << 20;
    if (scratch_.empty() || scratch_.back().bytes() < bytes)
        scratch_.emplace_back(p_.gpu, std::max(bytes, scratch_.empty() ? kLeast : 2 * scratch_.back().bytes()));
    return scratch_.back().data();
}

void add_collectives(pb_ops& ops) { set_checked_ops<OpContext, Collectives>(ops); }
pb_ops cuda_ops(OpContext& context) { return checked_ops<OpContext, CudaKernels>(context); }

}  // namespace patchbay
