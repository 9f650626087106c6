// The ops that a device may leave out, as cases: small random inputs, and what comes out by definition, in double.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "conformance/device_case.hpp"
#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

OpCase layer_norm(uint64_t seed, int64_t tokens, int64_t n, float shift) {
    Noise noise(seed);
    Floats x = noise.reals(at(tokens * n));
    for (float& v : x) v += shift;
    const Floats w = noise.reals(at(n)), bias = noise.reals(at(n));
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, n), {to - from, n}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, n}));
        PB_TRY(const pb_weight* weight, b.weights().make(PB_WEIGHT_VECTOR, 1, n, w));
        PB_TRY(const pb_weight* added, b.weights().make(PB_WEIGHT_VECTOR, 1, n, bias));
        return b.finish(out, [&](const pb_ops& o) { o.layer_norm(o.ctx, &out, &in, weight, added, 1e-5f); });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x);
        Doubles out;
        for (int64_t t = 0; t < tokens; ++t) {
            const auto row = in.begin() + t * n;
            const double mean = std::accumulate(row, row + n, 0.0) / static_cast<double>(n);
            double squares = 0;
            for (int64_t i = 0; i < n; ++i) squares += (row[i] - mean) * (row[i] - mean);
            for (int64_t i = 0; i < n; ++i)
                out.push_back((row[i] - mean) / std::sqrt(squares / static_cast<double>(n) + 1e-5) * w[at(i)] +
                              bias[at(i)]);
        }
        return out;
    };
    return {"layer_norm", "over " + std::to_string(n), tokens, run, expected};
}

double gelu(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }

double exact_gelu(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }

// An op that changes x (tokens, n) in place by an element's value.
OpCase in_place(const char* name, uint64_t seed, int64_t tokens, int64_t n, float spread,
                const std::function<void(const pb_ops&, const pb_tensor*)>& op, double (*f)(double)) {
    Noise noise(seed);
    const Floats x = noise.reals(at(tokens * n), -spread, spread);
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, n), {to - from, n}));
        return b.finish(in, [&](const pb_ops& o) { op(o, &in); });
    };
    const auto expected = [=](const Bench& b) {
        Doubles out;
        for (const float v : b.rounded(x)) out.push_back(f(v));
        return out;
    };
    return {name, "of " + std::to_string(n), tokens, run, expected};
}

// out = f(gate, up) of both halves of a row.
OpCase halves_op(const char* name, uint64_t seed, int64_t tokens, int64_t n,
                 const std::function<void(const pb_ops&, const pb_tensor*, const pb_tensor*)>& op,
                 const std::function<double(double, double)>& f) {
    Noise noise(seed);
    const Floats x = noise.reals(at(tokens * 2 * n), -6, 6);
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, 2 * n), {to - from, 2 * n}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, n}));
        return b.finish(out, [&](const pb_ops& o) { op(o, &out, &in); });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x);
        Doubles out;
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t i = 0; i < n; ++i) out.push_back(f(in[at(t * 2 * n + i)], in[at(t * 2 * n + n + i)]));
        return out;
    };
    return {name, "of " + std::to_string(n), tokens, run, expected};
}

// With a limit that some of its numbers are beyond.
OpCase swiglu_oai(uint64_t seed, int64_t tokens, int64_t n) {
    constexpr float kAlpha = 1.75f, kLimit = 3;
    return halves_op(
        "swiglu_oai", seed, tokens, n,
        [](const pb_ops& o, const pb_tensor* out, const pb_tensor* x) { o.swiglu_oai(o.ctx, out, x, kAlpha, kLimit); },
        [](double gate, double up) {
            const double g = std::min(gate, double{kLimit}), u = std::clamp(up, -double{kLimit}, double{kLimit});
            return (u + 1) * g / (1 + std::exp(-kAlpha * g));
        });
}

// gates: n, or one for a row.
OpCase sigmoid_mul(uint64_t seed, int64_t tokens, int64_t n, int64_t gates) {
    Noise noise(seed);
    const Floats x = noise.reals(at(tokens * n)), gate = noise.reals(at(tokens * gates), -6, 6);
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, n), {to - from, n}));
        PB_TRY(const pb_tensor by, b.arrays().put(slice(b.rounded(gate), from, to, gates), {to - from, gates}));
        return b.finish(in, [&](const pb_ops& o) { o.sigmoid_mul(o.ctx, &in, &by); });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x), by = b.rounded(gate);
        Doubles out;
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t i = 0; i < n; ++i)
                out.push_back(in[at(t * n + i)] / (1 + std::exp(-double{by[at(t * gates + (gates == 1 ? 0 : i))]})));
        return out;
    };
    return {"sigmoid_mul", std::to_string(gates) + " for " + std::to_string(n), tokens, run, expected};
}

// Gives each row's ids, then its weights. The logits are whole numbers, so that some are equal and none nearly.
OpCase top_k(uint64_t seed, int64_t tokens, int64_t n, int64_t k, uint32_t normalise) {
    Noise noise(seed);
    Floats x;
    for (int64_t i = 0; i < tokens * n; ++i) x.push_back(static_cast<float>(noise.below(9)) - 4);
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        const int64_t rows = to - from;
        PB_TRY(const pb_tensor in, b.arrays().put(slice(x, from, to, n), {rows, n}));
        PB_TRY(const pb_tensor ids, b.arrays().put_ints(std::vector<int32_t>(at(rows * k), -1), {rows, k}));
        PB_TRY(const pb_tensor weights, b.arrays().put_f32(Floats(at(rows * k), NAN), {rows, k}));
        PB_TRY(const Floats shares,
               b.finish(weights, [&](const pb_ops& o) { o.top_k(o.ctx, &ids, &weights, &in, normalise); }));
        PB_TRY(const Floats chosen, b.arrays().get(ids));
        Floats out;
        for (int64_t r = 0; r < rows; ++r)
            for (const Floats* half : {&chosen, &shares})
                out.insert(out.end(), half->begin() + r * k, half->begin() + (r + 1) * k);
        return out;
    };
    const auto expected = [=](const Bench&) {
        Doubles out;
        for (int64_t t = 0; t < tokens; ++t) {
            std::vector<int64_t> order(at(n));
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(),
                             [&](int64_t a, int64_t b) { return x[at(t * n + a)] > x[at(t * n + b)]; });
            double all = 0, best = 0;
            for (int64_t i = 0; i < n; ++i) (i < k ? best : all) += std::exp(x[at(t * n + order[at(i)])]);
            for (int64_t j = 0; j < k; ++j) out.push_back(static_cast<double>(order[at(j)]));
            for (int64_t j = 0; j < k; ++j)
                out.push_back(std::exp(x[at(t * n + order[at(j)])]) / (normalise ? best : all + best));
        }
        return out;
    };
    return {"top_k", std::to_string(k) + " of " + std::to_string(n) + (normalise ? ", normalised" : ""), tokens, run,
            expected};
}

// fan 1: one row of x for all k experts of a token; k: one each.
OpCase expert_linear(uint64_t seed, int64_t tokens, int64_t k, int64_t fan, int64_t count, int64_t rows, int64_t cols,
                     pb_dtype dtype) {
    Noise noise(seed);
    Floats w = noise.reals(at(count * rows * cols)), x = noise.reals(at(tokens * fan * cols));
    if (dtype == PB_BF16) // x too, since a device may round it to the dtype of the weights
        for (Floats* v : {&w, &x}) round_to_bf16(*v);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < tokens * k; ++i)
        ids.push_back(static_cast<int32_t>(noise.below(static_cast<uint32_t>(count))));
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, fan * cols), {to - from, fan, cols}));
        PB_TRY(const pb_tensor which,
               b.arrays().put_ints({ids.begin() + from * k, ids.begin() + to * k}, {to - from, k}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, k, rows}));
        std::vector<const pb_weight*> experts;
        for (int64_t e = 0; e < count; ++e) {
            PB_TRY(const pb_weight* expert,
                   b.weights().make(PB_WEIGHT_LINEAR, rows, cols, slice(w, e, e + 1, rows * cols), {}, 0, dtype));
            experts.push_back(expert);
        }
        return b.finish(out, [&](const pb_ops& o) {
            o.expert_linear(o.ctx, &out, &in, experts.data(), static_cast<uint32_t>(count), &which);
        });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x);
        Doubles out;
        for (int64_t p = 0; p < tokens * k; ++p)
            for (int64_t r = 0; r < rows; ++r) {
                double sum = 0;
                for (int64_t c = 0; c < cols; ++c)
                    sum +=
                        double{in[at((fan == 1 ? p / k : p) * cols + c)]} * w[at((ids[at(p)] * rows + r) * cols + c)];
                out.push_back(sum);
            }
        return out;
    };
    return {"expert_linear",
            std::to_string(k) + " of " + std::to_string(count) + " experts" + (fan == 1 ? ", " : ", by expert, ") +
                dtype_name(dtype),
            tokens, run, expected};
}

OpCase weighted_sum(uint64_t seed, int64_t tokens, int64_t k, int64_t n) {
    Noise noise(seed);
    const Floats x = noise.reals(at(tokens * k * n)), w = noise.reals(at(tokens * k));
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, k * n), {to - from, k, n}));
        PB_TRY(const pb_tensor weights, b.arrays().put_f32(slice(w, from, to, k), {to - from, k}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, n}));
        return b.finish(out, [&](const pb_ops& o) { o.weighted_sum(o.ctx, &out, &in, &weights); });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x);
        Doubles out(at(tokens * n));
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t j = 0; j < k; ++j)
                for (int64_t i = 0; i < n; ++i)
                    out[at(t * n + i)] += double{w[at(t * k + j)]} * in[at((t * k + j) * n + i)];
        return out;
    };
    return {"weighted_sum", std::to_string(k) + " of " + std::to_string(n), tokens, run, expected};
}

double gated(double gate, double up, pb_gate by) {
    return (by == PB_GATE_SILU ? gate / (1 + std::exp(-gate)) : gelu(gate)) * up;
}

struct Mlp {
    int64_t tokens, hidden, inner;
    Floats x, gate_up, down;
};

// inner rows of gates, then as many of ups, as random as x.
Mlp random_mlp(uint64_t seed, int64_t tokens, int64_t hidden, int64_t inner) {
    Noise noise(seed);
    return {tokens, hidden, inner, noise.reals(at(tokens * hidden)), noise.reals(at(2 * inner * hidden)),
            noise.reals(at(hidden * inner))};
}

// All that lies between is a whole number below 128, or as good as one, so that a device may round it to bf16.
Mlp whole_mlp(uint64_t seed, int64_t tokens, int64_t hidden, int64_t inner) {
    Noise noise(seed);
    Mlp m{tokens, hidden, inner, {}, Floats(at(2 * inner * hidden), 0), noise.reals(at(hidden * inner))};
    for (int64_t i = 0; i < tokens * hidden; ++i) m.x.push_back(1 + static_cast<float>(noise.below(2)));
    std::fill_n(m.gate_up.begin(), inner * hidden, 1.0f); // gates of at least `hidden`, which SiLU leaves as they are
    for (int64_t i = 0; i < inner; ++i) m.gate_up[at((inner + i) * hidden + i % hidden)] = i % 2 ? -1.0f : 1.0f;
    round_to_bf16(m.down);
    return m;
}

OpCase gated_mlp(const Mlp& m, pb_gate gate, pb_dtype dtype) {
    const int64_t hidden = m.hidden, inner = m.inner;
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(m.x), from, to, hidden), {to - from, hidden}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, hidden}));
        PB_TRY(const pb_weight* first, b.weights().make(PB_WEIGHT_LINEAR, 2 * inner, hidden, m.gate_up, {}, 0, dtype));
        PB_TRY(const pb_weight* second, b.weights().make(PB_WEIGHT_LINEAR, hidden, inner, m.down, {}, 0, dtype));
        return b.finish(out, [&](const pb_ops& o) { o.gated_mlp(o.ctx, &out, &in, first, second, gate); });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(m.x);
        const auto product = [&](int64_t t, int64_t r) {
            double sum = 0;
            for (int64_t c = 0; c < hidden; ++c) sum += double{in[at(t * hidden + c)]} * m.gate_up[at(r * hidden + c)];
            return sum;
        };
        Doubles out(at(m.tokens * hidden));
        for (int64_t t = 0; t < m.tokens; ++t)
            for (int64_t i = 0; i < inner; ++i) {
                const double between = gated(product(t, i), product(t, inner + i), gate);
                for (int64_t r = 0; r < hidden; ++r) out[at(t * hidden + r)] += between * m.down[at(r * inner + i)];
            }
        return out;
    };
    return {"gated_mlp",
            std::to_string(hidden) + " to " + std::to_string(inner) + (gate == PB_GATE_SILU ? ", SiLU, " : ", GELU, ") +
                dtype_name(dtype),
            m.tokens, run, expected};
}

}  // namespace

OpCase gate_op(const char* name, uint64_t seed, int64_t tokens, int64_t n,
               const std::function<void(const pb_ops&, const pb_tensor*, const pb_tensor*)>& op, double (*f)(double)) {
    return halves_op(name, seed, tokens, n, op, [f](double gate, double up) { return f(gate) * up; });
}

std::vector<OpCase> optional_op_cases() {
    return {layer_norm(21, 5, 67, 0),
            layer_norm(22, 3, 16, 3),
            in_place(
                "relu", 23, 4, 37, 2, [](const pb_ops& o, const pb_tensor* x) { o.relu(o.ctx, x); },
                [](double x) { return x < 0 ? 0 : x; }),
            in_place(
                "gelu_tanh", 24, 5, 45, 8, [](const pb_ops& o, const pb_tensor* x) { o.gelu_tanh(o.ctx, x); }, gelu),
            gate_op(
                "gelu_tanh_mul", 25, 5, 37,
                [](const pb_ops& o, const pb_tensor* out, const pb_tensor* x) { o.gelu_tanh_mul(o.ctx, out, x); },
                gelu),
            in_place(
                "scale", 26, 3, 29, 4, [](const pb_ops& o, const pb_tensor* x) { o.scale(o.ctx, x, 1.75f); },
                [](double x) { return x * 1.75; }),
            in_place(
                "soft_cap", 27, 4, 33, 90, [](const pb_ops& o, const pb_tensor* x) { o.soft_cap(o.ctx, x, 30); },
                [](double x) { return 30 * std::tanh(x / 30); }),
            in_place(
                "silu", 36, 4, 39, 8, [](const pb_ops& o, const pb_tensor* x) { o.silu(o.ctx, x); },
                [](double x) { return x / (1 + std::exp(-x)); }),
            in_place(
                "gelu_erf", 37, 5, 43, 8, [](const pb_ops& o, const pb_tensor* x) { o.gelu_erf(o.ctx, x); },
                exact_gelu),
            gate_op(
                "gelu_erf_mul", 38, 5, 37,
                [](const pb_ops& o, const pb_tensor* out, const pb_tensor* x) { o.gelu_erf_mul(o.ctx, out, x); },
                exact_gelu),
            sigmoid_mul(39, 5, 27, 27),
            sigmoid_mul(40, 4, 31, 1),
            swiglu_oai(41, 5, 37),
            top_k(28, 6, 8, 2, 1),
            top_k(29, 5, 13, 4, 0),
            expert_linear(30, 9, 2, 1, 4, 24, 17, PB_F32),
            expert_linear(31, 7, 3, 3, 3, 16, 40, PB_BF16),
            weighted_sum(32, 5, 3, 21),
            gated_mlp(random_mlp(33, 5, 19, 23), PB_GATE_SILU, PB_F32),
            gated_mlp(random_mlp(34, 3, 12, 32), PB_GATE_GELU_TANH, PB_F32),
            gated_mlp(whole_mlp(35, 7, 20, 64), PB_GATE_SILU, PB_BF16)};
}

}  // namespace patchbay::conformance
