// Slow and obviously correct: every sum in double. The fast kernels are tested against it, and the reference
// attention plugin runs it. Arrays are dense, row-major and f32 unless a comment says otherwise.
#pragma once
#include <cstdint>

#include "kernels/attention.hpp"

namespace patchbay::kernels::reference {

// out (tokens, rows) = x (tokens, cols) · wᵀ + bias; w (rows, cols), bias (rows) or nullptr
void linear(float* out, const float* x, const float* w, const float* bias, int64_t tokens, int64_t rows, int64_t cols);
// out (count, n) = table[ids[i]]; table (vocab, n)
void embedding(float* out, const float* table, const int32_t* ids, int64_t count, int64_t n);
// out (rows, n) = x / sqrt(mean(x²) + eps) · w; w (n). out may be x.
void rms_norm(float* out, const float* x, const float* w, int64_t rows, int64_t n, float eps);
// residual (rows, n) += x; out = rms_norm(residual)
void add_rms_norm(float* out, float* residual, const float* x, const float* w, int64_t rows, int64_t n, float eps);
// x (tokens, heads, head_dim) in place; element i < rot / 2 is paired with i + rot / 2. The angle is the f32 product
// positions[t] · inv_freq[i], as in training; cos and sin are multiplied by scale.
void rope(float* x, const int32_t* positions, const float* inv_freq, int64_t tokens, int64_t heads, int64_t head_dim,
          int64_t rot, float scale);
// out (rows, n) = silu(gate_up[:, :n]) · gate_up[:, n:]; gate_up (rows, 2 n)
void silu_mul(float* out, const float* gate_up, int64_t rows, int64_t n);
// a (n) += b (n)
void add(float* a, const float* b, int64_t n);
// out (rows, n) = (x − mean) / sqrt(variance + eps) · w + b; w, b (n). out may be x.
void layer_norm(float* out, const float* x, const float* w, const float* b, int64_t rows, int64_t n, float eps);
// x (n) in place, as the ops of these names
void relu(float* x, int64_t n);
void gelu_tanh(float* x, int64_t n);
void gelu_erf(float* x, int64_t n);
void silu(float* x, int64_t n);
void scale(float* x, float factor, int64_t n);
void soft_cap(float* x, float cap, int64_t n);
// out (rows, n) = gelu_tanh(gate_up[:, :n]) · gate_up[:, n:]; gate_up (rows, 2 n)
void gelu_tanh_mul(float* out, const float* gate_up, int64_t rows, int64_t n);
void gelu_erf_mul(float* out, const float* gate_up, int64_t rows, int64_t n);
void swiglu_oai(float* out, const float* gate_up, int64_t rows, int64_t n, float alpha, float limit);
// x (rows, n) *= sigmoid(gate); gate (rows, gates), gates: n, or 1 for all of a row
void sigmoid_mul(float* x, const float* gate, int64_t rows, int64_t n, int64_t gates);
// ids, weights (rows, k) of the greatest of softmax(logits (rows, n)), the lower index of equals; total: the sum that
// a row's weights are scaled to, 0: they stay probabilities
void top_k(int32_t* ids, float* weights, const float* logits, int64_t rows, int64_t k, int64_t n, double total);
// out (rows, n) = Σ weights[:, j] · x[:, j]; x (rows, k, n), weights (rows, k)
void weighted_sum(float* out, const float* x, const float* weights, int64_t rows, int64_t k, int64_t n);
// One sequence from its first row on. out (rows, n) = silu(bias + Σ w[c, j] · x[t − width + 1 + j, c]), zeros before
// the first row; w (n, width), bias (n) or nullptr
void causal_conv_silu(float* out, const float* x, const float* w, const float* bias, int64_t rows, int64_t n,
                      int64_t width);
// One sequence from its first row on, as pb_ops.ssm_scan; x, out (rows, heads, dim), dt (rows, heads), b, c (rows,
// groups, n), a_log, dt_bias, skip (heads)
struct ScanShape {
    int64_t rows, heads, dim, groups, n;
    double dt_min, dt_max;
};
void ssm_scan(float* out, const float* x, const float* dt, const float* b, const float* c, const float* a_log,
              const float* dt_bias, const float* skip, const ScanShape&);
// out (count, n) = x[rows[r]]
void gather_rows(float* out, const float* x, const int32_t* rows, int64_t count, int64_t n);

// A page is [keys: kv_heads × block_size × head_dim][values: the same].
uint64_t page_bytes(const AttentionShape&);
// k, v (tokens, kv_heads, head_dim) into the slots of the batch
void append_kv(const AttentionShape&, const AttentionBatch&, const KvPages&, const pb_tensor& k, const pb_tensor& v);
// out (tokens, heads, head_dim) from q (tokens, heads, head_dim), causal by absolute position; the query rows
// [from, to) of sequence s
void attend(const AttentionShape&, const AttentionBatch&, const KvPages&, const pb_tensor& out, const pb_tensor& q,
            uint32_t s, int32_t from, int32_t to);

}  // namespace patchbay::kernels::reference
