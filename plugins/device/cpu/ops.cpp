// The ops table: each checks what it is given, then calls its kernel. What does not fit becomes the step's fault, and
// the ops after it do nothing.
#include "checks.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

void embedding(void* ctx, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
    run(ctx, "embedding", [&](const kernels::Machine& machine) {
        const kernels::PackedMatrix& matrix = matrix_of(table, PB_WEIGHT_EMBEDDING, "embedding");
        expect_rank("ids", *ids, 1, 1);
        expect("out", *out, PB_F32, {ids->shape[0], matrix.cols()});
        kernels::embedding(machine, *out, matrix, indices("ids", *ids, {ids->shape[0]}, matrix.rows()));
    });
}

void linear(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
    run(ctx, "linear", [&](const kernels::Machine& machine) {
        const kernels::PackedMatrix& matrix = matrix_of(w, PB_WEIGHT_LINEAR, "linear");
        expect_rank("x", *x, 2, 2);
        expect("x", *x, PB_F32, {x->shape[0], matrix.cols()});
        expect("out", *out, PB_F32, {x->shape[0], matrix.rows()});
        kernels::linear(machine, *out, *x, matrix);
    });
}

void rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
    run(ctx, "rms_norm", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 3);
        expect_like("out", *out, *x);
        kernels::rms_norm(machine, *out, *x, vector_of(w, "the norm's weight", x->shape[x->rank - 1]), eps);
    });
}

void add_rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x, const pb_weight* w,
                  float eps) {
    run(ctx, "add_rms_norm", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 2);
        expect_like("residual", *residual, *x);
        expect_like("out", *out, *x);
        kernels::add_rms_norm(machine, *out, *residual, *x, vector_of(w, "the norm's weight", x->shape[1]), eps);
    });
}

void rope(void* ctx, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq, float scale) {
    run(ctx, "rope", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 3, 3);
        expect("positions", *positions, PB_I32, {x->shape[0]});
        const int64_t half = inv_freq ? static_cast<int64_t>(inv_freq->vector.size()) : 0;
        if (2 * half > x->shape[2])
            throw Mismatch{"inv_freq has " + std::to_string(half) + " values, expected at most half of head_dim " +
                           std::to_string(x->shape[2])};
        kernels::rope(machine, *x, static_cast<const int32_t*>(positions->data), vector_of(inv_freq, "inv_freq", half),
                      half, scale);
    });
}

void silu_mul(void* ctx, const pb_tensor* out, const pb_tensor* gate_up) {
    run(ctx, "silu_mul", [&](const kernels::Machine& machine) {
        expect_f32("out", *out, 2, 2);
        expect("gate_up", *gate_up, PB_F32, {out->shape[0], 2 * out->shape[1]});
        kernels::silu_mul(machine, *out, *gate_up);
    });
}

void add(void* ctx, const pb_tensor* a, const pb_tensor* b) {
    run(ctx, "add", [&](const kernels::Machine& machine) {
        expect_f32("a", *a, 2, 3);
        expect_like("b", *b, *a);
        kernels::add(machine, *a, *b);
    });
}

void gather_rows(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
    run(ctx, "gather_rows", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 2);
        expect_rank("rows", *rows, 1, 1);
        expect("out", *out, PB_F32, {rows->shape[0], x->shape[1]});
        kernels::gather_rows(machine, *out, *x, indices("rows", *rows, {rows->shape[0]}, x->shape[0]));
    });
}

void layer_norm(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* b,
                float eps) {
    run(ctx, "layer_norm", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 2, 2);
        expect_like("out", *out, *x);
        const int64_t n = x->shape[1];
        kernels::layer_norm(machine, *out, *x, vector_of(w, "the norm's weight", n), vector_of(b, "the norm's bias", n),
                            eps);
    });
}

// An op on the rows of x, in place.
template <class F>
void in_place(void* ctx, const char* op, const pb_tensor& x, F&& f) {
    run(ctx, op, [&](const kernels::Machine& machine) {
        expect_f32("x", x, 2, 2);
        f(machine, x);
    });
}

void relu(void* ctx, const pb_tensor* x) { in_place(ctx, "relu", *x, kernels::relu); }
void gelu_tanh(void* ctx, const pb_tensor* x) { in_place(ctx, "gelu_tanh", *x, kernels::gelu_tanh); }
void scale(void* ctx, const pb_tensor* x, float factor) {
    in_place(ctx, "scale", *x, [&](const kernels::Machine& m, const pb_tensor& t) { kernels::scale(m, t, factor); });
}
void soft_cap(void* ctx, const pb_tensor* x, float cap) {
    in_place(ctx, "soft_cap", *x, [&](const kernels::Machine& m, const pb_tensor& t) {
        if (!(cap > 0)) throw Mismatch{"cap is " + std::to_string(cap) + ", expected more than 0"};
        kernels::soft_cap(m, t, cap);
    });
}

void gelu_tanh_mul(void* ctx, const pb_tensor* out, const pb_tensor* gate_up) {
    run(ctx, "gelu_tanh_mul", [&](const kernels::Machine& machine) {
        expect_f32("out", *out, 2, 2);
        expect("gate_up", *gate_up, PB_F32, {out->shape[0], 2 * out->shape[1]});
        kernels::gelu_tanh_mul(machine, *out, *gate_up);
    });
}

void top_k(void* ctx, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits, uint32_t normalise) {
    run(ctx, "top_k", [&](const kernels::Machine& machine) {
        expect_f32("logits", *logits, 2, 2);
        expect_f32("weights", *weights, 2, 2);
        expect("weights", *weights, PB_F32, {logits->shape[0], weights->shape[1]});
        expect("ids", *ids, PB_I32, {logits->shape[0], weights->shape[1]});
        if (weights->shape[1] < 1 || weights->shape[1] > logits->shape[1])
            throw Mismatch{"k is " + std::to_string(weights->shape[1]) + ", expected 1 to " +
                           std::to_string(logits->shape[1])};
        kernels::top_k(machine, *ids, *weights, *logits,
                       normalise ? kernels::Normalise::kSumToOne : kernels::Normalise::kNo);
    });
}

void expert_linear(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts, uint32_t count,
                   const pb_tensor* ids) {
    run(ctx, "expert_linear", [&](const kernels::Machine& machine) {
        std::vector<const kernels::PackedMatrix*> matrices;
        for (uint32_t e = 0; e < count; ++e) {
            matrices.push_back(&matrix_of(experts[e], PB_WEIGHT_LINEAR, "linear"));
            if (matrices[e]->rows() != matrices[0]->rows() || matrices[e]->cols() != matrices[0]->cols())
                throw Mismatch{"expert " + std::to_string(e) + " has another shape than expert 0"};
        }
        if (count == 0) throw Mismatch{"there are no experts"};
        expect_f32("out", *out, 3, 3);
        expect_f32("x", *x, 3, 3);
        const int64_t tokens = out->shape[0], k = out->shape[1];
        expect("out", *out, PB_F32, {tokens, k, matrices[0]->rows()});
        expect("x", *x, PB_F32, {tokens, x->shape[1] == 1 ? 1 : k, matrices[0]->cols()});
        kernels::expert_linear(machine, static_cast<CpuDevice*>(ctx)->expert_rows(), *out, *x, matrices.data(), count,
                               indices("ids", *ids, {tokens, k}, count));
    });
}

void weighted_sum(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
    run(ctx, "weighted_sum", [&](const kernels::Machine& machine) {
        expect_f32("x", *x, 3, 3);
        expect("out", *out, PB_F32, {x->shape[0], x->shape[2]});
        expect("weights", *weights, PB_F32, {x->shape[0], x->shape[1]});
        kernels::weighted_sum(machine, *out, *x, *weights);
    });
}

void gated_mlp(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* gate_up, const pb_weight* down,
               pb_gate gate) {
    run(ctx, "gated_mlp", [&](const kernels::Machine& machine) {
        const kernels::PackedMatrix& first = matrix_of(gate_up, PB_WEIGHT_LINEAR, "linear");
        const kernels::PackedMatrix& second = matrix_of(down, PB_WEIGHT_LINEAR, "linear");
        if (first.rows() != 2 * second.cols())
            throw Mismatch{"gate_up has " + std::to_string(first.rows()) + " rows, expected twice the " +
                           std::to_string(second.cols()) + " columns of down"};
        if (gate != PB_GATE_SILU && gate != PB_GATE_GELU_TANH)
            throw Mismatch{"gate is " + std::to_string(gate) + ", expected 0 or 1"};
        expect_rank("x", *x, 2, 2);
        expect("x", *x, PB_F32, {x->shape[0], first.cols()});
        expect("out", *out, PB_F32, {x->shape[0], second.rows()});
        kernels::gated_mlp(machine, static_cast<CpuDevice*>(ctx)->mlp_rows(), *out, *x, first, second,
                           gate == PB_GATE_SILU ? kernels::Gate::kSilu : kernels::Gate::kGeluTanh);
    });
}

void take_tokens(void* ctx, const pb_tensor* ids, const pb_tensor* sampled) {
    run(ctx, "take_tokens", [&](const kernels::Machine&) {
        expect_rank("ids", *ids, 1, 1);
        expect("ids", *ids, PB_I32, {ids->shape[0]});
        expect_rank("sampled", *sampled, 1, 1);
        expect("sampled", *sampled, PB_I32, {sampled->shape[0]});
        auto* const all = static_cast<int32_t*>(ids->data);
        for (int64_t t = 0; t < ids->shape[0]; ++t) {
            if (all[t] >= 0) continue;
            if (~all[t] >= sampled->shape[0])
                throw Mismatch{"ids[" + std::to_string(t) + "] is " + std::to_string(all[t]) + ", expected at least -" +
                               std::to_string(sampled->shape[0])};
            all[t] = static_cast<const int32_t*>(sampled->data)[~all[t]];
        }
    });
}

}  // namespace

pb_ops cpu_ops(CpuDevice& device) {
    pb_ops out{};
    out.struct_size = sizeof out;
    out.ctx = &device;
    out.embedding = embedding;
    out.linear = linear;
    out.rms_norm = rms_norm;
    out.add_rms_norm = add_rms_norm;
    out.rope = rope;
    out.silu_mul = silu_mul;
    out.add = add;
    out.gather_rows = gather_rows;
    out.layer_norm = layer_norm;
    out.relu = relu;
    out.gelu_tanh = gelu_tanh;
    out.gelu_tanh_mul = gelu_tanh_mul;
    out.scale = scale;
    out.soft_cap = soft_cap;
    out.top_k = top_k;
    out.expert_linear = expert_linear;
    out.weighted_sum = weighted_sum;
    out.gated_mlp = gated_mlp;
    out.take_tokens = take_tokens;
    add_recurrent_ops(out);
    return out;
}

}  // namespace patchbay
