// Each op: checks its arguments, then calls a kernel. Values of ids are checked here.
#include "cpu.hpp"
#include "ids.hpp"
#include "patchbay/sdk/checked_ops.hpp"

namespace patchbay {
namespace {

const kernels::PackedMatrix& matrix(const pb_weight* w) { return *w->matrix; }
const float* vector(const pb_weight* w) { return w->vector.data(); }

struct CpuKernels {
    static void embedding(CpuDevice& d, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
        kernels::embedding(d.machine(), *out, matrix(table), checked_ids("ids", *ids, matrix(table).rows()));
    }
    static void linear(CpuDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
        kernels::linear(d.machine(), *out, *x, matrix(w));
    }
    static void rms_norm(CpuDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
        kernels::rms_norm(d.machine(), *out, *x, vector(w), eps);
    }
    static void add_rms_norm(CpuDevice& d, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x,
                             const pb_weight* w, float eps) {
        kernels::add_rms_norm(d.machine(), *out, *residual, *x, vector(w), eps);
    }
    static void layer_norm(CpuDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                           const pb_weight* b, float eps) {
        kernels::layer_norm(d.machine(), *out, *x, vector(w), vector(b), eps);
    }
    static void rope(CpuDevice& d, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq,
                     float scale) {
        kernels::rope(d.machine(), *x, static_cast<const int32_t*>(positions->data), vector(inv_freq),
                      static_cast<int64_t>(inv_freq->vector.size()), scale);
    }
    static void silu_mul(CpuDevice& d, const pb_tensor* out, const pb_tensor* gate_up) {
        kernels::silu_mul(d.machine(), *out, *gate_up);
    }
    static void gelu_tanh_mul(CpuDevice& d, const pb_tensor* out, const pb_tensor* gate_up) {
        kernels::gelu_tanh_mul(d.machine(), *out, *gate_up);
    }
    static void add(CpuDevice& d, const pb_tensor* a, const pb_tensor* b) { kernels::add(d.machine(), *a, *b); }
    static void gather_rows(CpuDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
        kernels::gather_rows(d.machine(), *out, *x, checked_ids("rows", *rows, x->shape[0]));
    }
    static void relu(CpuDevice& d, const pb_tensor* x) { kernels::relu(d.machine(), *x); }
    static void gelu_tanh(CpuDevice& d, const pb_tensor* x) { kernels::gelu_tanh(d.machine(), *x); }
    static void silu(CpuDevice& d, const pb_tensor* x) { kernels::silu(d.machine(), *x); }
    static void gelu_erf(CpuDevice& d, const pb_tensor* x) { kernels::gelu_erf(d.machine(), *x); }
    static void gelu_erf_mul(CpuDevice& d, const pb_tensor* out, const pb_tensor* gate_up) {
        kernels::gelu_erf_mul(d.machine(), *out, *gate_up);
    }
    static void swiglu_oai(CpuDevice& d, const pb_tensor* out, const pb_tensor* gate_up, float alpha, float limit) {
        kernels::swiglu_oai(d.machine(), *out, *gate_up, alpha, limit);
    }
    static void sigmoid_mul(CpuDevice& d, const pb_tensor* x, const pb_tensor* gate) {
        kernels::sigmoid_mul(d.machine(), *x, *gate);
    }
    static void scale(CpuDevice& d, const pb_tensor* x, float factor) { kernels::scale(d.machine(), *x, factor); }
    static void soft_cap(CpuDevice& d, const pb_tensor* x, float cap) { kernels::soft_cap(d.machine(), *x, cap); }
    static void top_k(CpuDevice& d, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits,
                      uint32_t normalise) {
        kernels::top_k(d.machine(), *ids, *weights, *logits,
                       normalise ? kernels::Normalise::kSumToOne : kernels::Normalise::kNo);
    }
    static void expert_linear(CpuDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                              uint32_t count, const pb_tensor* ids) {
        std::vector<const kernels::PackedMatrix*> matrices;
        for (uint32_t e = 0; e < count; ++e) matrices.push_back(&matrix(experts[e]));
        kernels::expert_linear(d.machine(), d.expert_rows(), *out, *x, matrices.data(), count,
                               checked_ids("ids", *ids, count));
    }
    static void weighted_sum(CpuDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
        kernels::weighted_sum(d.machine(), *out, *x, *weights);
    }
    static void gated_mlp(CpuDevice& d, const pb_tensor* out, const pb_tensor* x, const pb_weight* gate_up,
                          const pb_weight* down, pb_gate gate) {
        kernels::gated_mlp(d.machine(), d.mlp_rows(), *out, *x, matrix(gate_up), matrix(down),
                           gate == PB_GATE_SILU ? kernels::Gate::kSilu : kernels::Gate::kGeluTanh);
    }
    static void fill_placeholders(CpuDevice&, const pb_tensor* ids, const pb_tensor* sampled) {
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

pb_ops cpu_ops(CpuDevice& device) {
    pb_ops out = checked_ops<CpuDevice, CpuKernels>(device);
    add_recurrent_ops(out);
    return out;
}

}  // namespace patchbay
