// The cost of each op, after the same checks as on a device that computes: operations, and bytes read and
// written. An op without rows is not launched.
#include "ops.hpp"

#include <cmath>

#include "patchbay/sdk/checked_ops.hpp"
#include "weights.hpp"

namespace patchbay {
namespace {

double bytes(const pb_tensor* t) { return static_cast<double>(elements(*t) * dtype_bytes(t->dtype)); }
double bytes(const pb_weight* w) { return w ? static_cast<double>(w->bytes) : 0; }

void charge(OpContext& ctx, const pb_tensor* out, const Work& work) {
    if (elements(*out) > 0) ctx.charge(work);
}

void move(OpContext& ctx, const pb_tensor* out, double moved) { charge(ctx, out, {.bytes = moved}); }

// Multiply-adds of this many rows with a matrix, of which `read` bytes are read.
Work product(double rows, const pb_weight* w, double read) {
    return {2.0 * rows * static_cast<double>(w->rows) * static_cast<double>(w->cols), w->flop_per_ns, read};
}

// For an op with this many values in each page, which it reads and writes. Row by row an op would be bound by the
// states; a real kernel keeps them near, so they are read and written once.
double state_bytes(const pb_state* state, int64_t values) {
    return 2.0 * static_cast<double>(state->pages.shape[0] * values) * sizeof(float);
}

struct Charges {
    static void embedding(OpContext& ctx, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
        const double row = bytes(table) / static_cast<double>(table->rows);
        move(ctx, out, row * static_cast<double>(ids->shape[0]) + bytes(ids) + bytes(out));
    }
    static void linear(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
        charge(ctx, out, product(static_cast<double>(x->shape[0]), w, bytes(w) + bytes(x) + bytes(out)));
    }
    static void rms_norm(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float) {
        move(ctx, out, bytes(x) + bytes(out) + bytes(w));
    }
    static void add_rms_norm(OpContext& ctx, const pb_tensor* out, const pb_tensor*, const pb_tensor* x,
                             const pb_weight* w, float) {
        move(ctx, out, 4 * bytes(x) + bytes(w)); // the residual is read and written
    }
    static void layer_norm(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                           const pb_weight* b, float) {
        move(ctx, out, bytes(x) + bytes(out) + static_cast<double>(w->bytes + b->bytes));
    }
    static void rope(OpContext& ctx, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq, float) {
        const double turned = 2.0 * static_cast<double>(inv_freq->cols) / static_cast<double>(x->shape[2]);
        move(ctx, x, 2 * turned * bytes(x) + bytes(positions) + bytes(inv_freq)); // turned: rotated share of each head
    }
    static void silu_mul(OpContext& ctx, const pb_tensor* out, const pb_tensor* gate_up) {
        move(ctx, out, bytes(gate_up) + bytes(out));
    }
    static constexpr auto gelu_tanh_mul = silu_mul, gelu_erf_mul = silu_mul;
    static void add(OpContext& ctx, const pb_tensor* a, const pb_tensor* b) { move(ctx, a, 2 * bytes(a) + bytes(b)); }
    static void gather_rows(OpContext& ctx, const pb_tensor* out, const pb_tensor*, const pb_tensor* rows) {
        move(ctx, out, 2 * bytes(out) + bytes(rows));
    }
    static void relu(OpContext& ctx, const pb_tensor* x) { move(ctx, x, 2 * bytes(x)); }
    static constexpr auto gelu_tanh = relu, silu = relu, gelu_erf = relu;
    static void swiglu_oai(OpContext& ctx, const pb_tensor* out, const pb_tensor* gate_up, float, float) {
        silu_mul(ctx, out, gate_up);
    }
    static void sigmoid_mul(OpContext& ctx, const pb_tensor* x, const pb_tensor* gate) {
        move(ctx, x, 2 * bytes(x) + bytes(gate));
    }
    static void scale(OpContext& ctx, const pb_tensor* x, float) { move(ctx, x, 2 * bytes(x)); }
    static constexpr auto soft_cap = scale;
    static void top_k(OpContext& ctx, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits,
                      uint32_t) {
        move(ctx, ids, bytes(logits) + bytes(ids) + bytes(weights));
    }
    // The data would say which experts are read; here each of a token's k is equally likely.
    static void expert_linear(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts,
                              uint32_t count, const pb_tensor* ids) {
        const int64_t tokens = out->shape[0], k = out->shape[1];
        if (k > count)
            throw Mismatch{"k is " + std::to_string(k) + ", expected at most the " + std::to_string(count) +
                           " experts"};
        const double missed = 1 - static_cast<double>(k) / count; // by one token
        const double read = count * (1 - std::pow(missed, static_cast<double>(tokens)));
        charge(ctx, out, product(static_cast<double>(tokens * k), experts[0],
                               read * bytes(experts[0]) + bytes(x) + bytes(out) + bytes(ids)));
    }
    static void weighted_sum(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
        move(ctx, out, bytes(x) + bytes(out) + bytes(weights));
    }
    static void causal_conv_silu(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w,
                                 const pb_weight* bias, uint32_t width, const pb_state* state, uint64_t) {
        move(ctx, out, bytes(x) + bytes(out) + (bytes(w) + bytes(bias)) +
                           state_bytes(state, x->shape[1] * (width - 1)));
    }
    static void ssm_scan(OpContext& ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* dt,
                         const pb_tensor* b, const pb_tensor* c, const pb_scan*, const pb_state* state, uint64_t) {
        move(ctx, out, bytes(x) + bytes(out) + bytes(dt) + bytes(b) + bytes(c) +
                           state_bytes(state, x->shape[1] * x->shape[2] * b->shape[2]));
    }
    static void fill_placeholders(OpContext& ctx, const pb_tensor* ids, const pb_tensor*) {
        move(ctx, ids, 3 * bytes(ids)); // ids are read; for a filled one, the token and its place
    }
};

struct CollectiveCharges {
    // A ring: each rank passes on its part of the sum, in as many parts as there are ranks, and then the sum.
    static void all_reduce(OpContext& ctx, const pb_tensor* x) {
        const double ranks = ctx.ranks();
        charge(ctx, x, {.wire_ns = ctx.hardware().wire_ns(2 * (ranks - 1), bytes(x) / ranks)});
    }
    static void all_gather(OpContext& ctx, const pb_tensor* out, const pb_tensor* x) {
        charge(ctx, out, {.wire_ns = ctx.hardware().wire_ns(ctx.ranks() - 1.0, bytes(x))});
    }
};

}  // namespace

OpChecks OpContext::op_checks() const { return {activation_dtype_, false, ranks_, shape_of}; }

pb_ops sim_ops(OpContext& context) { return checked_ops<OpContext, Charges>(context); }
void add_collectives(pb_ops& ops) { set_checked_ops<OpContext, CollectiveCharges>(ops); }

}  // namespace patchbay
