// The ops table: each checks what it is given, as a device that computes would, and charges its time. What does not fit
// becomes the step's fault. An op without rows is not launched.
#include <initializer_list>

#include "patchbay/sdk/tensor.hpp"
#include "sim.hpp"

namespace patchbay {
namespace {

struct Mismatch {
    std::string text; // "x is f32 (3, 8), expected bf16 (3, 16)"
};

std::string shape_text(pb_dtype dtype, const int64_t* shape, int32_t rank) {
    std::string out = std::string(dtype_name(dtype)) + " (";
    for (int32_t i = 0; i < rank && i < PB_MAX_RANK; ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + ")";
}

void expect(const char* name, const pb_tensor& t, pb_dtype dtype, std::initializer_list<int64_t> shape) {
    const auto rank = static_cast<int32_t>(shape.size());
    if (t.dtype == dtype && t.rank == rank && std::equal(shape.begin(), shape.end(), t.shape)) return;
    throw Mismatch{std::string(name) + " is " + shape_text(t.dtype, t.shape, t.rank) + ", expected " +
                   shape_text(dtype, shape.begin(), rank)};
}

void expect_rank(const char* name, const pb_tensor& t, int32_t least, int32_t most) {
    if (t.rank >= least && t.rank <= most) return;
    throw Mismatch{std::string(name) + " has rank " + std::to_string(t.rank) + ", expected " + std::to_string(least) +
                   (most > least ? " to " + std::to_string(most) : "")};
}

void expect_like(const char* name, const pb_tensor& t, const pb_tensor& model) {
    if (model.rank == 3) expect(name, t, model.dtype, {model.shape[0], model.shape[1], model.shape[2]});
    else expect(name, t, model.dtype, {model.shape[0], model.shape[1]});
}

const pb_weight& weight_of(const pb_weight* w, pb_weight_role role, const char* role_name) {
    if (!w || !(w->uses & uint64_t{1} << role))
        throw Mismatch{std::string("the weight was not prepared for ") + role_name};
    return *w;
}

void expect_vector(const char* name, const pb_weight* w, int64_t size) {
    const pb_weight& vector = weight_of(w, PB_WEIGHT_VECTOR, name);
    if (vector.cols != size)
        throw Mismatch{std::string(name) + " has " + std::to_string(vector.cols) + " values, expected " +
                       std::to_string(size)};
}

double bytes(const pb_tensor& t) { return static_cast<double>(elements(t) * dtype_bytes(t.dtype)); }

// Runs f(device), which checks and says what the op takes, unless the step is faulty.
template <class F>
void charged(void* ctx, const char* op, const pb_tensor& out, F&& f) noexcept {
    auto& device = *static_cast<SimDevice*>(ctx);
    if (device.faulty()) return;
    try {
        const Work work = f(device.activation_dtype());
        if (elements(out) > 0) device.charge(work);
    } catch (const Mismatch& mismatch) {
        device.set_fault(std::string(op) + ": " + mismatch.text);
    } catch (const std::exception& error) {
        device.set_fault(std::string(op) + ": " + error.what());
    }
}

// An activation of rank 2 or 3 that gives the op its sizes.
void expect_activation(const char* name, const pb_tensor& t, pb_dtype dtype, int32_t least, int32_t most) {
    expect_rank(name, t, least, most);
    pb_tensor wanted = t;
    wanted.dtype = dtype;
    expect_like(name, t, wanted);
}

void embedding(void* ctx, const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) {
    charged(ctx, "embedding", *out, [&](pb_dtype dtype) {
        const pb_weight& w = weight_of(table, PB_WEIGHT_EMBEDDING, "embedding");
        expect_rank("ids", *ids, 1, 1);
        expect("ids", *ids, PB_I32, {ids->shape[0]});
        expect("out", *out, dtype, {ids->shape[0], w.cols});
        const double row = static_cast<double>(w.bytes) / static_cast<double>(w.rows);
        return Work{.bytes = row * static_cast<double>(ids->shape[0]) + bytes(*ids) + bytes(*out)};
    });
}

void linear(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* matrix) {
    charged(ctx, "linear", *out, [&](pb_dtype dtype) {
        const pb_weight& w = weight_of(matrix, PB_WEIGHT_LINEAR, "linear");
        expect_rank("x", *x, 2, 2);
        expect("x", *x, dtype, {x->shape[0], w.cols});
        expect("out", *out, out->dtype == PB_F32 ? PB_F32 : dtype, {x->shape[0], w.rows});
        return Work{2.0 * static_cast<double>(x->shape[0]) * static_cast<double>(w.rows) * static_cast<double>(w.cols),
                    w.flop_per_ns, static_cast<double>(w.bytes) + bytes(*x) + bytes(*out)};
    });
}

void rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float) {
    charged(ctx, "rms_norm", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 2, 3);
        expect_like("out", *out, *x);
        expect_vector("the norm's weight", w, x->shape[x->rank - 1]);
        return Work{.bytes = bytes(*x) + bytes(*out) + static_cast<double>(w->bytes)};
    });
}

void add_rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x, const pb_weight* w,
                  float) {
    charged(ctx, "add_rms_norm", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 2, 2);
        expect_like("residual", *residual, *x);
        expect_like("out", *out, *x);
        expect_vector("the norm's weight", w, x->shape[1]);
        return Work{.bytes = 4 * bytes(*x) + static_cast<double>(w->bytes)}; // the residual is read and written
    });
}

void rope(void* ctx, const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq, float) {
    charged(ctx, "rope", *x, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 3, 3);
        expect("positions", *positions, PB_I32, {x->shape[0]});
        const pb_weight& w = weight_of(inv_freq, PB_WEIGHT_VECTOR, "inv_freq");
        if (2 * w.cols > x->shape[2])
            throw Mismatch{"inv_freq has " + std::to_string(w.cols) + " values, expected at most half of head_dim " +
                           std::to_string(x->shape[2])};
        const double turned = 2.0 * static_cast<double>(w.cols) / static_cast<double>(x->shape[2]); // of each head
        return Work{.bytes = 2 * turned * bytes(*x) + bytes(*positions) + static_cast<double>(w.bytes)};
    });
}

Work gated(const pb_tensor& out, const pb_tensor& gate_up, pb_dtype dtype) {
    expect_activation("out", out, dtype, 2, 2);
    expect("gate_up", gate_up, dtype, {out.shape[0], 2 * out.shape[1]});
    return {.bytes = bytes(gate_up) + bytes(out)};
}

void silu_mul(void* ctx, const pb_tensor* out, const pb_tensor* gate_up) {
    charged(ctx, "silu_mul", *out, [&](pb_dtype dtype) { return gated(*out, *gate_up, dtype); });
}

void gelu_tanh_mul(void* ctx, const pb_tensor* out, const pb_tensor* gate_up) {
    charged(ctx, "gelu_tanh_mul", *out, [&](pb_dtype dtype) { return gated(*out, *gate_up, dtype); });
}

void add(void* ctx, const pb_tensor* a, const pb_tensor* b) {
    charged(ctx, "add", *a, [&](pb_dtype dtype) {
        expect_activation("a", *a, dtype, 2, 3);
        expect_like("b", *b, *a);
        return Work{.bytes = 2 * bytes(*a) + bytes(*b)};
    });
}

void gather_rows(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
    charged(ctx, "gather_rows", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 2, 2);
        expect_rank("rows", *rows, 1, 1);
        expect("rows", *rows, PB_I32, {rows->shape[0]});
        expect("out", *out, dtype, {rows->shape[0], x->shape[1]});
        return Work{.bytes = 2 * bytes(*out) + bytes(*rows)};
    });
}

void layer_norm(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* b, float) {
    charged(ctx, "layer_norm", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 2, 2);
        expect_like("out", *out, *x);
        expect_vector("the norm's weight", w, x->shape[1]);
        expect_vector("the norm's bias", b, x->shape[1]);
        return Work{.bytes = bytes(*x) + bytes(*out) + static_cast<double>(w->bytes + b->bytes)};
    });
}

void in_place(void* ctx, const char* op, const pb_tensor& x) {
    charged(ctx, op, x, [&](pb_dtype dtype) {
        expect_activation("x", x, x.dtype == PB_F32 ? PB_F32 : dtype, 2, 2);
        return Work{.bytes = 2 * bytes(x)};
    });
}

void relu(void* ctx, const pb_tensor* x) { in_place(ctx, "relu", *x); }
void gelu_tanh(void* ctx, const pb_tensor* x) { in_place(ctx, "gelu_tanh", *x); }
void scale(void* ctx, const pb_tensor* x, float) { in_place(ctx, "scale", *x); }
void soft_cap(void* ctx, const pb_tensor* x, float) { in_place(ctx, "soft_cap", *x); }

void top_k(void* ctx, const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits, uint32_t) {
    charged(ctx, "top_k", *ids, [&](pb_dtype dtype) {
        expect_activation("logits", *logits, dtype, 2, 2);
        expect_rank("weights", *weights, 2, 2);
        const int64_t k = weights->shape[1];
        expect("weights", *weights, PB_F32, {logits->shape[0], k});
        expect("ids", *ids, PB_I32, {logits->shape[0], k});
        if (k < 1 || k > logits->shape[1])
            throw Mismatch{"k is " + std::to_string(k) + ", expected 1 to " + std::to_string(logits->shape[1])};
        return Work{.bytes = bytes(*logits) + bytes(*ids) + bytes(*weights)};
    });
}

// Which experts are read is in the data; here each of a token's k is as likely as any other.
void expert_linear(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts, uint32_t count,
                   const pb_tensor* ids) {
    charged(ctx, "expert_linear", *out, [&](pb_dtype dtype) {
        if (count == 0) throw Mismatch{"there are no experts"};
        const pb_weight& first = weight_of(experts[0], PB_WEIGHT_LINEAR, "linear");
        for (uint32_t e = 1; e < count; ++e) {
            const pb_weight& w = weight_of(experts[e], PB_WEIGHT_LINEAR, "linear");
            if (w.rows != first.rows || w.cols != first.cols)
                throw Mismatch{"expert " + std::to_string(e) + " has another shape than expert 0"};
        }
        expect_rank("out", *out, 3, 3);
        expect_rank("x", *x, 3, 3);
        const int64_t tokens = out->shape[0], k = out->shape[1];
        expect("out", *out, dtype, {tokens, k, first.rows});
        expect("x", *x, dtype, {tokens, x->shape[1] == 1 ? 1 : k, first.cols});
        expect("ids", *ids, PB_I32, {tokens, k});
        if (k > count)
            throw Mismatch{"k is " + std::to_string(k) + ", expected at most the " + std::to_string(count) +
                           " experts"};
        const double missed = 1 - static_cast<double>(k) / count; // by one token
        const double read = count * (1 - std::pow(missed, static_cast<double>(tokens)));
        return Work{2.0 * static_cast<double>(tokens * k) * static_cast<double>(first.rows) *
                        static_cast<double>(first.cols),
                    first.flop_per_ns,
                    read * static_cast<double>(first.bytes) + bytes(*x) + bytes(*out) + bytes(*ids)};
    });
}

void weighted_sum(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) {
    charged(ctx, "weighted_sum", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 3, 3);
        expect("out", *out, dtype, {x->shape[0], x->shape[2]});
        expect("weights", *weights, PB_F32, {x->shape[0], x->shape[1]});
        return Work{.bytes = bytes(*x) + bytes(*out) + bytes(*weights)};
    });
}

// Bytes that go from and to the states, of which the op has `floats` in each page.
double state_bytes(const pb_state& state, uint64_t offset, int64_t floats) {
    const uint64_t end = offset + static_cast<uint64_t>(floats) * sizeof(float);
    if (end > state.page_stride)
        throw Mismatch{"the state needs " + std::to_string(floats) + " values at byte " + std::to_string(offset) +
                       ", pages have " + std::to_string(state.page_stride) + " bytes"};
    expect_rank("pages", state.pages, 1, 1);
    expect("begins", state.begins, PB_I32, {state.pages.shape[0]});
    expect("query_starts", state.query_starts, PB_I32, {state.pages.shape[0] + 1});
    return 2.0 * static_cast<double>(state.pages.shape[0] * floats) * sizeof(float);
}

void causal_conv_silu(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* bias,
                      uint32_t width, const pb_state* state, uint64_t offset) {
    charged(ctx, "causal_conv_silu", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 2, 2);
        expect_like("out", *out, *x);
        if (width < 2 || width > 16) throw Mismatch{"width is " + std::to_string(width) + ", expected 2 to 16"};
        expect_vector("the convolution's weight", w, x->shape[1] * width);
        if (bias) expect_vector("the convolution's bias", bias, x->shape[1]);
        return Work{.bytes = bytes(*x) + bytes(*out) + static_cast<double>(w->bytes + (bias ? bias->bytes : 0)) +
                             state_bytes(*state, offset, x->shape[1] * (width - 1))};
    });
}

// Row by row it would be bound by the states, which a real kernel keeps near: they are read and written once.
void ssm_scan(void* ctx, const pb_tensor* out, const pb_tensor* x, const pb_tensor* dt, const pb_tensor* b,
              const pb_tensor* c, const pb_scan* weights, const pb_state* state, uint64_t offset) {
    charged(ctx, "ssm_scan", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 3, 3);
        expect_like("out", *out, *x);
        const int64_t rows = x->shape[0], heads = x->shape[1];
        expect("dt", *dt, dtype, {rows, heads});
        expect_rank("b", *b, 3, 3);
        expect("b", *b, dtype, {rows, b->shape[1], b->shape[2]});
        expect_like("c", *c, *b);
        if (b->shape[1] == 0 || heads % b->shape[1] != 0)
            throw Mismatch{std::to_string(heads) + " heads over " + std::to_string(b->shape[1]) + " groups"};
        expect_vector("a_log", weights->a_log, heads);
        expect_vector("dt_bias", weights->dt_bias, heads);
        expect_vector("skip", weights->skip, heads);
        return Work{.bytes = bytes(*x) + bytes(*out) + bytes(*dt) + bytes(*b) + bytes(*c) +
                             state_bytes(*state, offset, heads * x->shape[2] * b->shape[2])};
    });
}

// A ring: each rank sends on what it has of the sum, in as many parts as there are ranks, and then the sum.
void all_reduce(void* ctx, const pb_tensor* x) {
    charged(ctx, "all_reduce", *x, [&](pb_dtype dtype) {
        expect_activation("x", *x, dtype, 2, 2);
        const auto& device = *static_cast<SimDevice*>(ctx);
        const double ranks = device.ranks();
        return Work{.wire_ns = device.wire_ns(2 * (ranks - 1), bytes(*x) / ranks)};
    });
}

void all_gather(void* ctx, const pb_tensor* out, const pb_tensor* x) {
    charged(ctx, "all_gather", *out, [&](pb_dtype dtype) {
        expect_activation("x", *x, x->dtype == PB_F32 ? PB_F32 : dtype, 2, 2);
        const auto& device = *static_cast<SimDevice*>(ctx);
        expect("out", *out, x->dtype, {x->shape[0], x->shape[1] * int64_t{device.ranks()}});
        return Work{.wire_ns = device.wire_ns(device.ranks() - 1.0, bytes(*x))};
    });
}

void take_tokens(void* ctx, const pb_tensor* ids, const pb_tensor* sampled) {
    charged(ctx, "take_tokens", *ids, [&](pb_dtype) {
        expect_rank("ids", *ids, 1, 1);
        expect("ids", *ids, PB_I32, {ids->shape[0]});
        expect_rank("sampled", *sampled, 1, 1);
        expect("sampled", *sampled, PB_I32, {sampled->shape[0]});
        return Work{.bytes = 3 * bytes(*ids)}; // read, and of a token that is taken it and its place
    });
}

}  // namespace

pb_ops sim_ops(SimDevice& device) {
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
    out.causal_conv_silu = causal_conv_silu;
    out.ssm_scan = ssm_scan;
    out.take_tokens = take_tokens;
    return out;
}

void add_collectives(pb_ops& ops) {
    ops.all_reduce = all_reduce;
    ops.all_gather = all_gather;
}

}  // namespace patchbay
