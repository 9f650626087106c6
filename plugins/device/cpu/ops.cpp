// Each op: checks its arguments, then calls a kernel. Values of ids are checked here.
#include "ops.hpp"

#include "ids.hpp"
#include "patchbay/sdk/checked_ops.hpp"
#include "weights.hpp"

namespace patchbay {
namespace {

const kernels::PackedMatrix& matrix(const pb_weight* w) { return *w->matrix; }
const float* vector(const pb_weight* w) { return w->vector.data(); }

struct CpuKernels {
    static void embedding(OpContext& ctx, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
        kernels::embedding(ctx.machine(), *out, matrix(table), checked_ids("ids", *ids, matrix(table).rows()));
    }
    static void linear(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
        kernels::linear(ctx.machine(), *out, *x, matrix(w));
    }
    static void rms_norm(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
        kernels::rms_norm(ctx.machine(), *out, *x, vector(w), eps);
    }
    static void add_rms_norm(OpContext& ctx, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x,
                             const pb_weight* w, float eps) {
        kernels::add_rms_norm(ctx.machine(), *out, *residual, *x, vector(w), eps);
    }
    static void layer_norm(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                           const pb_weight* b, float eps) {
        kernels::layer_norm(ctx.machine(), *out, *x, vector(w), vector(b), eps);
    }
    static void rope(OpContext& ctx, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq,
                     float scale) {
        kernels::rope(ctx.machine(), *x, static_cast<const int32_t*>(positions->data), vector(inv_freq),
                      static_cast<int64_t>(inv_freq->vector.size()), scale);
    }
    static void silu_mul(OpContext& ctx, const pb_tensor* out, const pb_tensor* gate_up) {
        kernels::silu_mul(ctx.machine(), *out, *gate_up);
    }
    static void gelu_tanh_mul(OpContext& ctx, const pb_tensor* out, const pb_tensor* gate_up) {
        kernels::gelu_tanh_mul(ctx.machine(), *out, *gate_up);
    }
    static void add(OpContext& ctx, const pb_tensor* a, const pb_tensor* b) { kernels::add(ctx.machine(), *a, *b); }
    static void gather_rows(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
        kernels::gather_rows(ctx.machine(), *out, *x, checked_ids("rows", *rows, x->shape[0]));
    }
    static void relu(OpContext& ctx, const pb_tensor* x) { kernels::relu(ctx.machine(), *x); }
    static void gelu_tanh(OpContext& ctx, const pb_tensor* x) { kernels::gelu_tanh(ctx.machine(), *x); }
    static void silu(OpContext& ctx, const pb_tensor* x) { kernels::silu(ctx.machine(), *x); }
    static void gelu_erf(OpContext& ctx, const pb_tensor* x) { kernels::gelu_erf(ctx.machine(), *x); }
    static void gelu_erf_mul(OpContext& ctx, const pb_tensor* out, const pb_tensor* gate_up) {
        kernels::gelu_erf_mul(ctx.machine(), *out, *gate_up);
    }
    static void swiglu_oai(OpContext& ctx, const pb_tensor* out, const pb_tensor* gate_up, float alpha, float limit) {
        kernels::swiglu_oai(ctx.machine(), *out, *gate_up, alpha, limit);
    }
    static void sigmoid_mul(OpContext& ctx, const pb_tensor* x, const pb_tensor* gate) {
        kernels::sigmoid_mul(ctx.machine(), *x, *gate);
    }
    static void scale(OpContext& ctx, const pb_tensor* x, float factor) { kernels::scale(ctx.machine(), *x, factor); }
    static void soft_cap(OpContext& ctx, const pb_tensor* x, float cap) { kernels::soft_cap(ctx.machine(), *x, cap); }
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
    static void weighted_sum(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
        kernels::weighted_sum(ctx.machine(), *out, *x, *weights);
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
