// Each op: checks its arguments, then calls a kernel. Values of ids are checked here.
#include "ops.hpp"

#include "ids.hpp"
#include "patchbay/sdk/checked_ops.hpp"
#include "weights.hpp"

namespace patchbay {
namespace {

const kernels::PackedMatrix& matrix(const pb_weight* w) { return *w->matrix; }
const float* vector(const pb_weight* w) { return w->vector.data(); }

// An op whose arguments are its kernel's.
const pb_tensor& passed(const pb_tensor* t) { return *t; }
const float* passed(const pb_weight* w) { return vector(w); }
float passed(float number) { return number; }
template <auto kernel>
constexpr auto kOp = [](OpContext& ctx, const auto&... args) { kernel(ctx.machine(), passed(args)...); };

struct CpuKernels {
    static constexpr auto rms_norm = kOp<kernels::rms_norm>;
    static constexpr auto add_rms_norm = kOp<kernels::add_rms_norm>;
    static constexpr auto layer_norm = kOp<kernels::layer_norm>;
    static constexpr auto silu_mul = kOp<kernels::silu_mul>;
    static constexpr auto gelu_tanh_mul = kOp<kernels::gelu_tanh_mul>;
    static constexpr auto add = kOp<kernels::add>;
    static constexpr auto relu = kOp<kernels::relu>;
    static constexpr auto gelu_tanh = kOp<kernels::gelu_tanh>;
    static constexpr auto silu = kOp<kernels::silu>;
    static constexpr auto gelu_erf = kOp<kernels::gelu_erf>;
    static constexpr auto gelu_erf_mul = kOp<kernels::gelu_erf_mul>;
    static constexpr auto swiglu_oai = kOp<kernels::swiglu_oai>;
    static constexpr auto sigmoid_mul = kOp<kernels::sigmoid_mul>;
    static constexpr auto scale = kOp<kernels::scale>;
    static constexpr auto soft_cap = kOp<kernels::soft_cap>;
    static constexpr auto weighted_sum = kOp<kernels::weighted_sum>;
    static void embedding(OpContext& ctx, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
        kernels::embedding(ctx.machine(), *out, matrix(table), checked_ids("ids", *ids, matrix(table).rows()));
    }
    static void linear(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
        kernels::linear(ctx.machine(), *out, *x, matrix(w));
    }
    static void rope(OpContext& ctx, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq,
                     float scale) {
        kernels::rope(ctx.machine(), *x, static_cast<const int32_t*>(positions->data), vector(inv_freq),
                      static_cast<int64_t>(inv_freq->vector.size()), scale);
    }
    static void gather_rows(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
        kernels::gather_rows(ctx.machine(), *out, *x, checked_ids("rows", *rows, x->shape[0]));
    }
    static void top_k(OpContext& ctx, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits,
                      uint32_t normalise) {
        kernels::top_k(ctx.machine(), *ids, *weights, *logits,
                       normalise ? kernels::Normalise::kSumToOne : kernels::Normalise::kNo);
    }
    static void expert_linear(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                              uint32_t count, const pb_tensor* ids) {
        std::vector<const kernels::PackedMatrix*> matrices;
        for (uint32_t e = 0; e < count; ++e) matrices.push_back(&matrix(experts[e]));
        kernels::expert_linear(ctx.machine(), ctx.expert_rows(), *out, *x, matrices.data(), count,
                               checked_ids("ids", *ids, count));
    }
    static void gated_mlp(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* gate_up,
                          const pb_weight* down, pb_gate gate) {
        kernels::gated_mlp(ctx.machine(), ctx.mlp_rows(), *out, *x, matrix(gate_up), matrix(down),
                           gate == PB_GATE_SILU ? kernels::Gate::kSilu : kernels::Gate::kGeluTanh);
    }
    static void fill_placeholders(OpContext&, const pb_tensor* ids, const pb_tensor* sampled) {
        auto* const all = static_cast<int32_t*>(ids->data);
        for (int64_t t = 0; t < ids->shape[0]; ++t) {
            if (all[t] >= 0) continue;
            if (~all[t] >= sampled->shape[0])
                throw Mismatch{"ids[" + std::to_string(t) + "] is " + std::to_string(all[t]) + ", expected at least -" +
                               std::to_string(sampled->shape[0])};
            all[t] = static_cast<const int32_t*>(sampled->data)[~all[t]];
        }
    }
};

}  // namespace

OpChecks OpContext::op_checks() const { return {PB_F32, true, connection_.size(), shape_of}; }

pb_ops cpu_ops(OpContext& context) {
    pb_ops out = checked_ops<OpContext, CpuKernels>(context);
    add_recurrent_ops(out);
    return out;
}

}  // namespace patchbay
