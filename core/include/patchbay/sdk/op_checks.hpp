// patchbay/sdk/op_checks.hpp - what each op is given, checked against what pb_ops says: shapes, dtypes, how weights
// were prepared; not the values of ids. For devices, by way of checked_ops.hpp. A check throws Mismatch, whose text
// ("x is f32 (3, 8), expected bf16 (3, 16)") becomes the step's fault.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>

#include "patchbay/abi/device.h"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

struct Mismatch {
    std::string text;
};

inline std::string shape_text(pb_dtype dtype, const int64_t* shape, int32_t rank) {
    std::string out = std::string(dtype_name(dtype)) + " (";
    for (int32_t i = 0; i < rank && i < PB_MAX_RANK; ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + ")";
}

inline void expect_rank(const char* name, const pb_tensor& t, int32_t min, int32_t max) {
    if (t.rank >= min && t.rank <= max) return;
    throw Mismatch{std::string(name) + " has rank " + std::to_string(t.rank) + ", expected " + std::to_string(min) +
                   (max > min ? " to " + std::to_string(max) : "")};
}

struct WeightShape { // what a device has prepared
    uint64_t uses = 0; // bit set of 1 << role
    int64_t rows = 0, cols = 0;
};

struct OpChecks {
    pb_dtype activation_dtype = PB_F32;
    bool computes = true; // else data pointers may be null
    uint32_t ranks = 1;
    WeightShape (*shape_of)(const pb_weight*) = nullptr; // of a weight that is not null

    void embedding(const pb_tensor* out, const pb_weight* table, const pb_tensor* ids) const {
        const WeightShape w = weight(table, PB_WEIGHT_EMBEDDING, "embedding");
        expect_rank("ids", *ids, 1, 1);
        expect_indices("ids", *ids, {ids->shape[0]});
        expect("out", *out, activation_dtype, {ids->shape[0], w.cols});
    }
    void linear(const pb_tensor* out, const pb_tensor* x, const pb_weight* matrix) const {
        const WeightShape w = weight(matrix, PB_WEIGHT_LINEAR, "linear");
        expect_rank("x", *x, 2, 2);
        expect("x", *x, activation_dtype, {x->shape[0], w.cols});
        expect("out", *out, or_f32(*out), {x->shape[0], w.rows});
    }
    void rms_norm(const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float) const {
        expect_sizes("x", *x, activation_dtype, 2, 3);
        expect_like("out", *out, *x);
        expect_vector("the norm's weight", w, x->shape[x->rank - 1]);
    }
    void add_rms_norm(const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x, const pb_weight* w,
                      float) const {
        expect_sizes("x", *x, activation_dtype, 2, 2);
        expect_like("residual", *residual, *x);
        expect_like("out", *out, *x);
        expect_vector("the norm's weight", w, x->shape[1]);
    }
    void layer_norm(const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* b, float) const {
        expect_sizes("x", *x, activation_dtype, 2, 2);
        expect_like("out", *out, *x);
        expect_vector("the norm's weight", w, x->shape[1]);
        expect_vector("the norm's bias", b, x->shape[1]);
    }
    void rope(const pb_tensor* x, const pb_tensor* positions, const pb_weight* inv_freq, float) const {
        expect_sizes("x", *x, activation_dtype, 3, 3);
        expect_indices("positions", *positions, {x->shape[0]});
        const int64_t half = vector_size("inv_freq", inv_freq);
        if (2 * half > x->shape[2])
            throw Mismatch{"inv_freq has " + std::to_string(half) + " values, expected at most half of head_dim " +
                           std::to_string(x->shape[2])};
    }
    void silu_mul(const pb_tensor* out, const pb_tensor* gate_up) const { expect_gate(*out, *gate_up); }
    void gelu_tanh_mul(const pb_tensor* out, const pb_tensor* gate_up) const { expect_gate(*out, *gate_up); }
    void gelu_erf_mul(const pb_tensor* out, const pb_tensor* gate_up) const { expect_gate(*out, *gate_up); }
    void swiglu_oai(const pb_tensor* out, const pb_tensor* gate_up, float, float limit) const {
        expect_gate(*out, *gate_up);
        if (!(limit > 0)) throw Mismatch{"limit is " + std::to_string(limit) + ", expected more than 0"};
    }
    void sigmoid_mul(const pb_tensor* x, const pb_tensor* gate) const {
        expect_sizes("x", *x, activation_dtype, 2, 2);
        expect_rank("gate", *gate, 2, 2);
        expect("gate", *gate, activation_dtype, {x->shape[0], gate->shape[1] == 1 ? 1 : x->shape[1]});
    }
    void add(const pb_tensor* a, const pb_tensor* b) const {
        expect_sizes("a", *a, activation_dtype, 2, 3);
        expect_like("b", *b, *a);
    }
    void gather_rows(const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) const {
        expect_sizes("x", *x, activation_dtype, 2, 2);
        expect_rank("rows", *rows, 1, 1);
        expect_indices("rows", *rows, {rows->shape[0]});
        expect("out", *out, activation_dtype, {rows->shape[0], x->shape[1]});
    }
    // In place: activations, or logits, which may be F32 beside any activation dtype.
    void relu(const pb_tensor* x) const { expect_sizes("x", *x, or_f32(*x), 2, 2); }
    void silu(const pb_tensor* x) const { expect_sizes("x", *x, or_f32(*x), 2, 2); }
    void gelu_tanh(const pb_tensor* x) const { expect_sizes("x", *x, or_f32(*x), 2, 2); }
    void gelu_erf(const pb_tensor* x) const { expect_sizes("x", *x, or_f32(*x), 2, 2); }
    void scale(const pb_tensor* x, float) const { expect_sizes("x", *x, or_f32(*x), 2, 2); }
    void soft_cap(const pb_tensor* x, float cap) const {
        expect_sizes("x", *x, or_f32(*x), 2, 2);
        if (!(cap > 0)) throw Mismatch{"cap is " + std::to_string(cap) + ", expected more than 0"};
    }
    void top_k(const pb_tensor* ids, const pb_tensor* weights, const pb_tensor* logits, uint32_t) const {
        expect_sizes("logits", *logits, activation_dtype, 2, 2);
        expect_rank("weights", *weights, 2, 2);
        const int64_t k = weights->shape[1];
        expect("weights", *weights, PB_F32, {logits->shape[0], k});
        expect_indices("ids", *ids, {logits->shape[0], k});
        if (k < 1 || k > logits->shape[1])
            throw Mismatch{"k is " + std::to_string(k) + ", expected 1 to " + std::to_string(logits->shape[1])};
    }
    void expert_linear(const pb_tensor* out, const pb_tensor* x, const pb_weight* const* experts, uint32_t count,
                       const pb_tensor* ids) const {
        if (count == 0) throw Mismatch{"there are no experts"};
        const WeightShape first = weight(experts[0], PB_WEIGHT_LINEAR, "linear");
        for (uint32_t e = 1; e < count; ++e) {
            const WeightShape w = weight(experts[e], PB_WEIGHT_LINEAR, "linear");
            if (w.rows != first.rows || w.cols != first.cols)
                throw Mismatch{"expert " + std::to_string(e) + " has another shape than expert 0"};
        }
        expect_rank("out", *out, 3, 3);
        expect_rank("x", *x, 3, 3);
        const int64_t tokens = out->shape[0], k = out->shape[1];
        expect("out", *out, activation_dtype, {tokens, k, first.rows});
        expect("x", *x, activation_dtype, {tokens, x->shape[1] == 1 ? 1 : k, first.cols});
        expect_indices("ids", *ids, {tokens, k});
    }
    void weighted_sum(const pb_tensor* out, const pb_tensor* x, const pb_tensor* weights) const {
        expect_sizes("x", *x, activation_dtype, 3, 3);
        expect("out", *out, activation_dtype, {x->shape[0], x->shape[2]});
        expect("weights", *weights, PB_F32, {x->shape[0], x->shape[1]});
    }
    void gated_mlp(const pb_tensor* out, const pb_tensor* x, const pb_weight* gate_up, const pb_weight* down,
                   pb_gate gate) const {
        const WeightShape first = weight(gate_up, PB_WEIGHT_LINEAR, "linear");
        const WeightShape second = weight(down, PB_WEIGHT_LINEAR, "linear");
        if (first.rows != 2 * second.cols)
            throw Mismatch{"gate_up has " + std::to_string(first.rows) + " rows, expected twice the " +
                           std::to_string(second.cols) + " columns of down"};
        if (gate != PB_GATE_SILU && gate != PB_GATE_GELU_TANH)
            throw Mismatch{"gate is " + std::to_string(gate) + ", expected 0 or 1"};
        expect_rank("x", *x, 2, 2);
        expect("x", *x, activation_dtype, {x->shape[0], first.cols});
        expect("out", *out, activation_dtype, {x->shape[0], second.rows});
    }
    void causal_conv_silu(const pb_tensor* out, const pb_tensor* x, const pb_weight* w, const pb_weight* bias,
                          uint32_t width, const pb_state* state, uint64_t offset) const {
        expect_sizes("x", *x, activation_dtype, 2, 2);
        expect_like("out", *out, *x);
        if (width < 2 || width > 16) throw Mismatch{"width is " + std::to_string(width) + ", expected 2 to 16"};
        expect_vector("the convolution's weight", w, x->shape[1] * width);
        if (bias) expect_vector("the convolution's bias", bias, x->shape[1]);
        expect_state(*state, offset, x->shape[1] * (width - 1));
    }
    void ssm_scan(const pb_tensor* out, const pb_tensor* x, const pb_tensor* dt, const pb_tensor* b,
                  const pb_tensor* c, const pb_scan* weights, const pb_state* state, uint64_t offset) const {
        expect_sizes("x", *x, activation_dtype, 3, 3);
        expect_like("out", *out, *x);
        const int64_t rows = x->shape[0], heads = x->shape[1];
        expect("dt", *dt, activation_dtype, {rows, heads});
        expect_rank("b", *b, 3, 3);
        expect("b", *b, activation_dtype, {rows, b->shape[1], b->shape[2]});
        expect_like("c", *c, *b);
        if (b->shape[1] == 0 || heads % b->shape[1] != 0)
            throw Mismatch{std::to_string(heads) + " heads over " + std::to_string(b->shape[1]) + " groups"};
        expect_vector("a_log", weights->a_log, heads);
        expect_vector("dt_bias", weights->dt_bias, heads);
        expect_vector("skip", weights->skip, heads);
        expect_state(*state, offset, heads * x->shape[2] * b->shape[2]);
    }
    void fill_placeholders(const pb_tensor* ids, const pb_tensor* sampled) const {
        expect_rank("ids", *ids, 1, 1);
        expect_indices("ids", *ids, {ids->shape[0]});
        expect_rank("sampled", *sampled, 1, 1);
        expect_indices("sampled", *sampled, {sampled->shape[0]});
    }
    void all_reduce(const pb_tensor* x) const {
        expect_sizes("x", *x, activation_dtype, 2, 2);
        expect_contiguous("x", *x);
    }
    void all_gather(const pb_tensor* out, const pb_tensor* x) const {
        expect_sizes("x", *x, or_f32(*x), 2, 2);
        expect_contiguous("x", *x);
        expect("out", *out, x->dtype, {x->shape[0], x->shape[1] * int64_t{ranks}});
        expect_contiguous("out", *out);
    }

  private:
    pb_dtype or_f32(const pb_tensor& t) const { return t.dtype == PB_F32 ? PB_F32 : activation_dtype; }

    void expect(const char* name, const pb_tensor& t, pb_dtype dtype, std::initializer_list<int64_t> shape) const {
        const auto rank = static_cast<int32_t>(shape.size());
        const bool fits = t.dtype == dtype && t.rank == rank && std::equal(shape.begin(), shape.end(), t.shape);
        if (fits && t.strides[rank - 1] == 1 && (t.data || !computes || elements(t) == 0)) return;
        std::string got = shape_text(t.dtype, t.shape, t.rank);
        if (fits && t.strides[rank - 1] != 1) got += " with inner stride " + std::to_string(t.strides[rank - 1]);
        else if (fits) got += " without data";
        throw Mismatch{std::string(name) + " is " + got + ", expected " + shape_text(dtype, shape.begin(), rank)};
    }
    void expect_like(const char* name, const pb_tensor& t, const pb_tensor& other) const { // of rank 2 or 3
        if (other.rank == 3) expect(name, t, other.dtype, {other.shape[0], other.shape[1], other.shape[2]});
        else expect(name, t, other.dtype, {other.shape[0], other.shape[1]});
    }
    // A tensor that gives an op its sizes, of rank 2 or 3.
    void expect_sizes(const char* name, const pb_tensor& t, pb_dtype dtype, int32_t min_rank, int32_t max_rank) const {
        expect_rank(name, t, min_rank, max_rank);
        pb_tensor expected = t;
        expected.dtype = dtype;
        expect_like(name, t, expected);
    }
    static void expect_contiguous(const char* name, const pb_tensor& t) {
        if (t.rank == 2 && t.shape[0] > 1 && t.strides[0] != t.shape[1])
            throw Mismatch{std::string(name) + " is not contiguous"};
    }
    void expect_indices(const char* name, const pb_tensor& t, std::initializer_list<int64_t> shape) const {
        expect(name, t, PB_I32, shape);
        expect_contiguous(name, t);
    }
    void expect_gate(const pb_tensor& out, const pb_tensor& gate_up) const {
        expect_sizes("out", out, activation_dtype, 2, 2);
        expect("gate_up", gate_up, activation_dtype, {out.shape[0], 2 * out.shape[1]});
    }
    WeightShape weight(const pb_weight* w, pb_weight_role role, const char* role_name) const {
        const WeightShape shape = w ? shape_of(w) : WeightShape{};
        if (shape.uses & uint64_t{1} << role) return shape;
        throw Mismatch{std::string("the weight was not prepared for ") + role_name};
    }
    int64_t vector_size(const char* name, const pb_weight* w) const {
        const WeightShape shape = w ? shape_of(w) : WeightShape{};
        if (shape.uses & uint64_t{1} << PB_WEIGHT_VECTOR) return shape.rows * shape.cols;
        throw Mismatch{std::string(name) + " was not prepared as a vector"};
    }
    void expect_vector(const char* name, const pb_weight* w, int64_t size) const {
        if (const int64_t got = vector_size(name, w); got != size)
            throw Mismatch{std::string(name) + " has " + std::to_string(got) + " values, expected " +
                           std::to_string(size)};
    }
    // The op keeps `floats` values in each page.
    void expect_state(const pb_state& state, uint64_t offset, int64_t floats) const {
        const uint64_t end = offset + static_cast<uint64_t>(floats) * sizeof(float);
        if ((computes && !state.data) || offset % sizeof(float) != 0 || end > state.page_stride)
            throw Mismatch{"the state needs " + std::to_string(floats) + " values at byte " + std::to_string(offset) +
                           ", pages have " + std::to_string(state.page_stride) + " bytes"};
        expect_rank("pages", state.pages, 1, 1);
        const int64_t count = state.pages.shape[0];
        expect_indices("pages", state.pages, {count});
        expect_indices("is_first_chunk", state.is_first_chunk, {count});
        expect_indices("query_starts", state.query_starts, {count + 1});
    }
};

}  // namespace patchbay
