// The ops table as cases: small random inputs, and what comes out by definition, in double.
#include <cmath>

#include "conformance/device_case.hpp"
#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

OpCase linear(uint64_t seed, int64_t tokens, int64_t rows, int64_t cols, bool with_bias, pb_dtype dtype) {
    Noise noise(seed);
    Floats w = noise.reals(at(rows * cols)),
           bias = with_bias ? noise.reals(at(rows)) : Floats{};
    Floats x = noise.reals(at(tokens * cols));
    if (dtype == PB_BF16) // x too, since a device may round it to the dtype of the weights
        for (Floats* v : {&w, &bias, &x}) round_to_bf16(*v);
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, cols), {to - from, cols}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, rows}));
        PB_TRY(const pb_weight* weight, b.weights().make(PB_WEIGHT_LINEAR, rows, cols, w, bias, 0, dtype));
        return b.finish(out, [&](const pb_ops& o) { o.linear(o.ctx, &out, &in, weight); });
    };
    const auto expected = [=](const Bench& b) {
        Doubles out;
        const Floats in = b.rounded(x);
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t r = 0; r < rows; ++r) {
                double sum = with_bias ? bias[at(r)] : 0;
                for (int64_t c = 0; c < cols; ++c)
                    sum += double{in[at(t * cols + c)]} * w[at(r * cols + c)];
                out.push_back(sum);
            }
        return out;
    };
    return {"linear",
            "(" + std::to_string(tokens) + ", " + std::to_string(cols) + ") by (" + std::to_string(rows) + ", " +
                std::to_string(cols) + ") " + dtype_name(dtype) + (with_bias ? ", bias" : ""),
            tokens, run, expected};
}

OpCase embedding(uint64_t seed, int64_t vocab, int64_t n, uint64_t uses) {
    Noise noise(seed);
    const Floats table = noise.reals(at(vocab * n));
    std::vector<int32_t> ids = {0, static_cast<int32_t>(vocab - 1)};
    for (int i = 0; i < 5; ++i) ids.push_back(static_cast<int32_t>(noise.below(static_cast<uint32_t>(vocab))));
    const auto tokens = static_cast<int64_t>(ids.size());
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put_ints({ids.begin() + from, ids.begin() + to}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, n}));
        PB_TRY(const pb_weight* weight, b.weights().make(PB_WEIGHT_EMBEDDING, vocab, n, table, {}, uses));
        return b.finish(out, [&](const pb_ops& o) { o.embedding(o.ctx, &out, weight, &in); });
    };
    const auto expected = [=](const Bench&) {
        Doubles out;
        for (const int32_t id : ids) out.insert(out.end(), table.begin() + id * n, table.begin() + (id + 1) * n);
        return out;
    };
    return {"embedding", "of " + std::to_string(vocab) + (uses ? ", tied" : ""), tokens, run, expected};
}

Doubles norm_of(const Doubles& x, const Floats& w, int64_t n, double eps) {
    Doubles out;
    for (size_t from = 0; from < x.size(); from += at(n)) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += x[from + at(i)] * x[from + at(i)];
        for (int64_t i = 0; i < n; ++i)
            out.push_back(x[from + at(i)] / std::sqrt(sum / static_cast<double>(n) + eps) *
                          w[at(i)]);
    }
    return out;
}

// heads 0: x (tokens, n); else x (tokens, heads, n), as models norm queries.
OpCase rms_norm(uint64_t seed, int64_t tokens, int64_t heads, int64_t n) {
    Noise noise(seed);
    const int64_t width = std::max<int64_t>(heads, 1) * n;
    const Floats x = noise.reals(at(tokens * width)), w = noise.reals(at(n));
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        const Floats rows = slice(b.rounded(x), from, to, width);
        DeviceArrays& a = b.arrays();
        PB_TRY(const pb_tensor in, heads ? a.put(rows, {to - from, heads, n}) : a.put(rows, {to - from, n}));
        PB_TRY(const pb_tensor out, heads ? a.poison({to - from, heads, n}) : a.poison({to - from, n}));
        PB_TRY(const pb_weight* weight, b.weights().make(PB_WEIGHT_VECTOR, 1, n, w));
        return b.finish(out, [&](const pb_ops& o) { o.rms_norm(o.ctx, &out, &in, weight, 1e-5f); });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x);
        return norm_of({in.begin(), in.end()}, w, n, 1e-5);
    };
    return {"rms_norm", "over " + std::to_string(n) + (heads ? ", by heads" : ""), tokens, run, expected};
}

// Gives each row of the residual, then that of the norm.
OpCase add_rms_norm(uint64_t seed, int64_t tokens, int64_t n) {
    Noise noise(seed);
    const Floats x = noise.reals(at(tokens * n)), r = noise.reals(at(tokens * n)),
                 w = noise.reals(at(n));
    const auto interleave = [=](const auto& a, const auto& b) {
        std::decay_t<decltype(a)> out;
        for (int64_t from = 0; from < static_cast<int64_t>(a.size()); from += n) {
            out.insert(out.end(), a.begin() + from, a.begin() + from + n);
            out.insert(out.end(), b.begin() + from, b.begin() + from + n);
        }
        return out;
    };
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, n), {to - from, n}));
        PB_TRY(const pb_tensor residual, b.arrays().put(slice(b.rounded(r), from, to, n), {to - from, n}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, n}));
        PB_TRY(const pb_weight* weight, b.weights().make(PB_WEIGHT_VECTOR, 1, n, w));
        PB_TRY(const Floats norm,
               b.finish(out, [&](const pb_ops& o) { o.add_rms_norm(o.ctx, &out, &residual, &in, weight, 1e-5f); }));
        PB_TRY(const Floats sum, b.arrays().get(residual));
        return interleave(sum, norm);
    };
    const auto expected = [=](const Bench& b) {
        Doubles sum;
        const Floats xs = b.rounded(x), rs = b.rounded(r);
        for (size_t i = 0; i < xs.size(); ++i) sum.push_back(double{xs[i]} + rs[i]);
        return interleave(sum, norm_of(sum, w, n, 1e-5));
    };
    return {"add_rms_norm", "over " + std::to_string(n), tokens, run, expected};
}

OpCase rope(uint64_t seed, int64_t heads, int64_t dim, int64_t rotary, float scale) {
    Noise noise(seed);
    const std::vector<int32_t> positions = {0, 1, 2, 17, 100, 63};
    const auto tokens = static_cast<int64_t>(positions.size());
    const int64_t half = rotary / 2, width = heads * dim;
    const Floats x = noise.reals(at(tokens * width));
    Floats frequencies;
    for (int64_t i = 0; i < half; ++i)
        frequencies.push_back(
            static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary))));
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, width), {to - from, heads, dim}));
        PB_TRY(const pb_tensor at, b.arrays().put_ints({positions.begin() + from, positions.begin() + to}));
        PB_TRY(const pb_weight* weight, b.weights().make(PB_WEIGHT_VECTOR, 1, half, frequencies));
        return b.finish(in, [&](const pb_ops& o) { o.rope(o.ctx, &in, &at, weight, scale); });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x);
        Doubles out(in.begin(), in.end());
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t h = 0; h < heads; ++h)
                for (int64_t i = 0; i < half; ++i) {
                    const auto p = at(t * width + h * dim + i), q = p + at(half);
                    const double angle =
                                     double{frequencies[at(i)]} * positions[at(t)],
                                 c = std::cos(angle) * scale, s = std::sin(angle) * scale;
                    out[p] = in[p] * c - in[q] * s;
                    out[q] = in[q] * c + in[p] * s;
                }
        return out;
    };
    return {"rope", std::to_string(rotary) + " of head_dim " + std::to_string(dim), tokens, run, expected};
}

OpCase silu_mul(uint64_t seed, int64_t tokens, int64_t n) {
    return gate_op(
        "silu_mul", seed, tokens, n,
        [](const pb_ops& o, const pb_tensor* out, const pb_tensor* x) { o.silu_mul(o.ctx, out, x); },
        [](double x) { return x / (1 + std::exp(-x)); });
}

OpCase add(uint64_t seed, int64_t tokens, int64_t n) {
    Noise noise(seed);
    const Floats x = noise.reals(at(tokens * n)), y = noise.reals(at(tokens * n));
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor to_sum, b.arrays().put(slice(b.rounded(x), from, to, n), {to - from, n}));
        PB_TRY(const pb_tensor other, b.arrays().put(slice(b.rounded(y), from, to, n), {to - from, n}));
        return b.finish(to_sum, [&](const pb_ops& o) { o.add(o.ctx, &to_sum, &other); });
    };
    const auto expected = [=](const Bench& b) {
        Doubles out;
        for (size_t i = 0; i < x.size(); ++i) out.push_back(double{b.rounded(x[i])} + b.rounded(y[i]));
        return out;
    };
    return {"add", "of " + std::to_string(n), tokens, run, expected};
}

OpCase gather_rows(uint64_t seed, int64_t from_rows, int64_t n) {
    Noise noise(seed);
    const Floats x = noise.reals(at(from_rows * n));
    const std::vector<int32_t> rows = {static_cast<int32_t>(from_rows - 1), 0, 2, 2};
    const auto count = static_cast<int64_t>(rows.size());
    const auto run = [=](Bench& b, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(b.rounded(x), {from_rows, n}));
        PB_TRY(const pb_tensor which, b.arrays().put_ints({rows.begin() + from, rows.begin() + to}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, n}));
        return b.finish(out, [&](const pb_ops& o) { o.gather_rows(o.ctx, &out, &in, &which); });
    };
    const auto expected = [=](const Bench& b) {
        Doubles out;
        for (const int32_t r : rows)
            for (int64_t i = 0; i < n; ++i) out.push_back(b.rounded(x[at(r * n + i)]));
        return out;
    };
    return {"gather_rows", "of " + std::to_string(n), count, run, expected};
}

}  // namespace

std::vector<OpCase> op_cases() {
    constexpr uint64_t kLinearToo = 1u << PB_WEIGHT_LINEAR;
    std::vector<OpCase> out = {linear(1, 1, 1, 1, false, PB_F32),
                               linear(2, 5, 33, 17, true, PB_F32),
                               linear(3, 9, 64, 64, false, PB_F32),
                               linear(4, 3, 40, 130, true, PB_BF16),
                               linear(5, 33, 7, 48, false, PB_BF16),
                               embedding(6, 50, 24, 0),
                               embedding(7, 31, 64, kLinearToo),
                               rms_norm(8, 5, 0, 67),
                               rms_norm(9, 3, 4, 16),
                               add_rms_norm(10, 6, 40),
                               rope(11, 3, 16, 16, 1),
                               rope(12, 2, 24, 8, 1.25f),
                               silu_mul(13, 5, 37),
                               add(14, 4, 65),
                               gather_rows(15, 6, 19)};
    for (OpCase& c : optional_op_cases()) out.push_back(std::move(c));
    for (OpCase& c : recurrent_op_cases()) out.push_back(std::move(c));
    return out;
}

}  // namespace patchbay::conformance
