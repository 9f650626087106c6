#include "kernels/reference.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace patchbay::kernels::reference {
namespace {

double silu_of(double x) { return x / (1 + std::exp(-x)); }
double gelu_tanh_of(double x) { // as x / 2 · (1 + tanh u), without its cancellation
    const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return x / (1 + std::exp(-2 * u));
}
double gelu_erf_of(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }

template <class F>
void each(float* x, int64_t n, F&& f) {
    for (int64_t i = 0; i < n; ++i) x[i] = float(f(double(x[i])));
}

// f(gate, up) of rows that hold both.
template <class F>
void each_gated(float* out, const float* gate_up, int64_t rows, int64_t n, F&& f) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i)
            out[r * n + i] = float(f(double(gate_up[r * 2 * n + i]), double(gate_up[r * 2 * n + n + i])));
}

}  // namespace

void linear(float* out, const float* x, const float* w, const float* bias, int64_t tokens, int64_t rows, int64_t cols) {
    for (int64_t t = 0; t < tokens; ++t)
        for (int64_t r = 0; r < rows; ++r) {
            double sum = bias ? bias[r] : 0.0;
            for (int64_t c = 0; c < cols; ++c) sum += double(x[t * cols + c]) * w[r * cols + c];
            out[t * rows + r] = float(sum);
        }
}

void embedding(float* out, const float* table, const int32_t* ids, int64_t count, int64_t n) {
    for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < n; ++c) out[i * n + c] = table[ids[i] * n + c];
}

void rms_norm(float* out, const float* x, const float* w, int64_t rows, int64_t n, float eps) {
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += double(x[r * n + i]) * x[r * n + i];
        const double scale = 1.0 / std::sqrt(sum / double(n) + eps);
        for (int64_t i = 0; i < n; ++i) out[r * n + i] = float(x[r * n + i] * scale * w[i]);
    }
}

void add_rms_norm(float* out, float* residual, const float* x, const float* w, int64_t rows, int64_t n, float eps) {
    add(residual, x, rows * n);
    rms_norm(out, residual, w, rows, n, eps);
}

void rope(float* x, const int32_t* positions, const float* inv_freq, int64_t tokens, int64_t heads, int64_t head_dim,
          int64_t rot, float scale) {
    const int64_t half = rot / 2;
    for (int64_t t = 0; t < tokens; ++t)
        for (int64_t h = 0; h < heads; ++h) {
            float* row = x + (t * heads + h) * head_dim;
            for (int64_t i = 0; i < half; ++i) {
                const double angle = float(positions[t]) * inv_freq[i];
                const double c = std::cos(angle) * scale, s = std::sin(angle) * scale;
                const double a = row[i], b = row[i + half];
                row[i] = float(a * c - b * s);
                row[i + half] = float(b * c + a * s);
            }
        }
}

void add(float* a, const float* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] += b[i];
}

void layer_norm(float* out, const float* x, const float* w, const float* b, int64_t rows, int64_t n, float eps) {
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; ++i) sum += x[r * n + i];
        const double mean = sum / double(n);
        for (int64_t i = 0; i < n; ++i) squares += (x[r * n + i] - mean) * (x[r * n + i] - mean);
        const double scale = 1.0 / std::sqrt(squares / double(n) + eps);
        for (int64_t i = 0; i < n; ++i) out[r * n + i] = float((x[r * n + i] - mean) * scale * w[i] + b[i]);
    }
}

void relu(float* x, int64_t n) {
    each(x, n, [](double v) { return v < 0 ? 0 : v; });
}
void silu(float* x, int64_t n) { each(x, n, silu_of); }
void gelu_tanh(float* x, int64_t n) { each(x, n, gelu_tanh_of); }
void gelu_erf(float* x, int64_t n) { each(x, n, gelu_erf_of); }
void soft_cap(float* x, float cap, int64_t n) {
    each(x, n, [&](double v) { return cap * std::tanh(v / cap); });
}
void scale(float* x, float factor, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

void silu_mul(float* out, const float* gate_up, int64_t rows, int64_t n) {
    each_gated(out, gate_up, rows, n, [](double gate, double up) { return silu_of(gate) * up; });
}
void gelu_tanh_mul(float* out, const float* gate_up, int64_t rows, int64_t n) {
    each_gated(out, gate_up, rows, n, [](double gate, double up) { return gelu_tanh_of(gate) * up; });
}
void gelu_erf_mul(float* out, const float* gate_up, int64_t rows, int64_t n) {
    each_gated(out, gate_up, rows, n, [](double gate, double up) { return gelu_erf_of(gate) * up; });
}
void swiglu_oai(float* out, const float* gate_up, int64_t rows, int64_t n, float alpha, float limit) {
    each_gated(out, gate_up, rows, n, [&](double g, double u) {
        if (g > limit) g = limit; // NaN stays
        if (u > limit) u = limit;
        if (u < -limit) u = -limit;
        return (u + 1) * g / (1 + std::exp(-double(alpha) * g));
    });
}

void sigmoid_mul(float* x, const float* gate, int64_t rows, int64_t n, int64_t gates) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i)
            x[r * n + i] = float(x[r * n + i] / (1 + std::exp(-double(gate[r * gates + (gates == 1 ? 0 : i)]))));
}

void top_k(int32_t* ids, float* weights, const float* logits, int64_t rows, int64_t k, int64_t n, double total) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* x = logits + r * n;
        std::vector<bool> taken(static_cast<size_t>(n));
        double sum = 0, all = 0;
        for (int64_t j = 0; j < k; ++j) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; ++i)
                if (!taken[size_t(i)] && (best < 0 || x[i] > x[best])) best = i;
            taken[size_t(best)] = true;
            ids[r * k + j] = int32_t(best);
            sum += std::exp(double(x[best]) - x[ids[r * k]]);
        }
        for (int64_t i = 0; i < n; ++i) all += std::exp(double(x[i]) - x[ids[r * k]]);
        for (int64_t j = 0; j < k; ++j)
            weights[r * k + j] =
                float(std::exp(double(x[ids[r * k + j]]) - x[ids[r * k]]) * (total > 0 ? total / sum : 1 / all));
    }
}

void weighted_sum(float* out, const float* x, const float* weights, int64_t rows, int64_t k, int64_t n) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < k; ++j) sum += double(weights[r * k + j]) * x[(r * k + j) * n + i];
            out[r * n + i] = float(sum);
        }
}

void gather_rows(float* out, const float* x, const int32_t* rows, int64_t count, int64_t n) {
    embedding(out, x, rows, count, n);
}

}  // namespace patchbay::kernels::reference
