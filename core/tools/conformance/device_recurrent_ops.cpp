// The ops of recurrent layers, as cases: what a row gives must not depend on how the rows before it were dealt out, so
// rows [from, to) are computed after those before them; or rows are sequences, each with a page of its own.
#include <algorithm>
#include <cmath>

#include "conformance/device_case.hpp"
#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

constexpr int64_t kOffset = 16; // floats in front of an op's state in a page

// Pages full of NaN, and which of them hold the states of a batch.
struct Pages {
    static Result<Pages> create(Bench& b, int64_t count, int64_t floats) {
        Pages out;
        out.count = count;
        out.floats = (kOffset + floats + 15) / 16 * 16;
        PB_TRY(out.memory, b.arrays().put_f32(Floats(at(count * out.floats), NAN), {count, out.floats}));
        return out;
    }
    Result<pb_state> state(Bench& b, const std::vector<int32_t>& pages, const std::vector<int32_t>& starts,
                           const std::vector<int32_t>& is_first_chunk) const {
        pb_state s{};
        s.struct_size = sizeof s;
        s.page_count = static_cast<uint32_t>(count);
        s.data = memory.data;
        s.page_stride = static_cast<uint64_t>(floats) * sizeof(float);
        PB_TRY(s.pages, b.arrays().put_ints(pages));
        PB_TRY(s.query_starts, b.arrays().put_ints(starts));
        PB_TRY(s.is_first_chunk, b.arrays().put_ints(is_first_chunk));
        return s;
    }
    // What is no sequence's state must be as it was.
    Result<> check(Bench& b, const std::vector<int32_t>& used) const {
        if (!b.info().computes) return {};
        PB_TRY(const Floats now, b.arrays().get(memory));
        for (int64_t p = 0; p < count; ++p) {
            const bool own = std::find(used.begin(), used.end(), p) != used.end();
            for (int64_t i = 0; i < (own ? kOffset : floats); ++i)
                if (!std::isnan(now[at(p * floats + i)]))
                    return fail("page " + std::to_string(p) + " is written " + (own ? "in front of its state" : "to"));
        }
        return {};
    }
    pb_tensor memory{};
    int64_t count = 0, floats = 0;
};

// Computes the rows [from, to) of a batch of sequences, with states.
using Part = std::function<Result<Floats>(Bench&, const Pages&, const pb_state&, int64_t from, int64_t to)>;

// Rows of one sequence.
Result<Floats> of_one(Bench& b, int64_t floats, int64_t from, int64_t to, const Part& part) {
    PB_TRY(const Pages pages, Pages::create(b, 3, floats));
    const std::vector<int32_t> page = {1};
    if (from > 0) {
        PB_TRY(const pb_state before, pages.state(b, page, {0, static_cast<int32_t>(from)}, {1}));
        PB_TRY(const Floats ignored, part(b, pages, before, 0, from));
    }
    PB_TRY(const pb_state state, pages.state(b, page, {0, static_cast<int32_t>(to - from)}, {from == 0}));
    PB_TRY(Floats out, part(b, pages, state, from, to));
    PB_CHECK(pages.check(b, page));
    return out;
}

// Whole sequences of `length` rows.
Result<Floats> of_several(Bench& b, int64_t floats, int64_t length, int64_t from, int64_t to, const Part& part) {
    PB_TRY(const Pages pages, Pages::create(b, 2 * to + 1, floats));
    std::vector<int32_t> own, starts = {0}, is_first_chunk;
    for (int64_t s = from; s < to; ++s) {
        own.push_back(static_cast<int32_t>(2 * (to - s) - 1));
        starts.push_back(starts.back() + static_cast<int32_t>(length));
        is_first_chunk.push_back(1);
    }
    PB_TRY(const pb_state state, pages.state(b, own, starts, is_first_chunk));
    PB_TRY(Floats out, part(b, pages, state, from * length, to * length));
    PB_CHECK(pages.check(b, own));
    return out;
}

// rows of sequences of `length`; all of one: length = rows
OpCase states_case(const char* op, std::string what, int64_t rows, int64_t length, int64_t floats, const Part& part,
                   const std::function<Doubles(const Bench&)>& expected) {
    if (length == rows)
        return {op, what + " in one sequence", rows,
                [=](Bench& b, int64_t from, int64_t to) { return of_one(b, floats, from, to, part); }, expected};
    return {op, what + " in sequences of " + std::to_string(length), rows / length,
            [=](Bench& b, int64_t from, int64_t to) { return of_several(b, floats, length, from, to, part); },
            expected};
}

OpCase conv(uint64_t seed, int64_t rows, int64_t length, int64_t n, int64_t width) {
    Noise noise(seed);
    const Floats x = noise.reals(at(rows * n), -3, 3), w = noise.reals(at(n * width)), bias = noise.reals(at(n));
    const Part part = [=](Bench& b, const Pages&, const pb_state& state, int64_t from, int64_t to) -> Result<Floats> {
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, n), {to - from, n}));
        PB_TRY(const pb_tensor out, b.arrays().poison({to - from, n}));
        PB_TRY(const pb_weight* taps, b.weights().make(PB_WEIGHT_VECTOR, 1, n * width, w));
        PB_TRY(const pb_weight* added, b.weights().make(PB_WEIGHT_VECTOR, 1, n, bias));
        return b.finish(out, [&](const pb_ops& o) {
            o.causal_conv_silu(o.ctx, &out, &in, taps, width % 2 ? nullptr : added, static_cast<uint32_t>(width),
                               &state, kOffset * sizeof(float));
        });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x);
        Doubles out;
        for (int64_t t = 0; t < rows; ++t)
            for (int64_t c = 0; c < n; ++c) {
                double sum = width % 2 ? 0 : bias[at(c)];
                for (int64_t back = 0; back < width && back <= t % length; ++back)
                    sum += double{w[at(c * width + width - 1 - back)]} * in[at((t - back) * n + c)];
                out.push_back(sum / (1 + std::exp(-sum)));
            }
        return out;
    };
    return states_case("causal_conv_silu", std::to_string(width) + " taps of " + std::to_string(n), rows, length,
                       (width - 1) * n, part, expected);
}

struct ScanSize {
    int64_t rows, length, heads, dim, groups, n;
};

OpCase scan(uint64_t seed, const ScanSize& z) {
    Noise noise(seed);
    const int64_t width = z.heads * z.dim, inner = z.groups * z.n;
    const Floats x = noise.reals(at(z.rows * width)), dt = noise.reals(at(z.rows * z.heads), -4, 4),
                 b_in = noise.reals(at(z.rows * inner)), c_in = noise.reals(at(z.rows * inner)),
                 a_log = noise.reals(at(z.heads), -2, 2), dt_bias = noise.reals(at(z.heads)),
                 skip = noise.reals(at(z.heads));
    constexpr float kMinStep = 0.05f, kMaxStep = 2.5f;
    const Part part = [=](Bench& b, const Pages&, const pb_state& state, int64_t from, int64_t to) -> Result<Floats> {
        const int64_t count = to - from;
        PB_TRY(const pb_tensor in, b.arrays().put(slice(b.rounded(x), from, to, width), {count, z.heads, z.dim}));
        PB_TRY(const pb_tensor steps, b.arrays().put(slice(b.rounded(dt), from, to, z.heads), {count, z.heads}));
        PB_TRY(const pb_tensor bs, b.arrays().put(slice(b.rounded(b_in), from, to, inner), {count, z.groups, z.n}));
        PB_TRY(const pb_tensor cs, b.arrays().put(slice(b.rounded(c_in), from, to, inner), {count, z.groups, z.n}));
        PB_TRY(const pb_tensor out, b.arrays().poison({count, z.heads, z.dim}));
        pb_scan weights{sizeof(pb_scan), 0, nullptr, nullptr, nullptr, kMinStep, kMaxStep};
        PB_TRY(weights.a_log, b.weights().make(PB_WEIGHT_VECTOR, 1, z.heads, a_log));
        PB_TRY(weights.dt_bias, b.weights().make(PB_WEIGHT_VECTOR, 1, z.heads, dt_bias));
        PB_TRY(weights.skip, b.weights().make(PB_WEIGHT_VECTOR, 1, z.heads, skip));
        return b.finish(out, [&](const pb_ops& o) {
            o.ssm_scan(o.ctx, &out, &in, &steps, &bs, &cs, &weights, &state, kOffset * sizeof(float));
        });
    };
    const auto expected = [=](const Bench& b) {
        const Floats in = b.rounded(x), steps = b.rounded(dt), bs = b.rounded(b_in), cs = b.rounded(c_in);
        Doubles out(at(z.rows * width));
        for (int64_t h = 0; h < z.heads; ++h)
            for (int64_t i = 0; i < z.dim; ++i) {
                Doubles state(at(z.n), 0.0);
                for (int64_t t = 0; t < z.rows; ++t) {
                    if (t % z.length == 0) std::fill(state.begin(), state.end(), 0.0);
                    const double free = std::log1p(std::exp(double{steps[at(t * z.heads + h)]} + dt_bias[at(h)]));
                    const double step = std::clamp(free, double{kMinStep}, double{kMaxStep});
                    const double decay = std::exp(-std::exp(double{a_log[at(h)]}) * step);
                    const double value = in[at(t * width + h * z.dim + i)];
                    double sum = skip[at(h)] * value;
                    for (int64_t j = 0; j < z.n; ++j) {
                        const size_t from = at(t * inner + h / (z.heads / z.groups) * z.n + j);
                        state[at(j)] = decay * state[at(j)] + step * value * bs[from];
                        sum += state[at(j)] * cs[from];
                    }
                    out[at(t * width + h * z.dim + i)] = sum;
                }
            }
        return out;
    };
    return states_case("ssm_scan",
                       std::to_string(z.heads) + " heads of " + std::to_string(z.dim) + " by " + std::to_string(z.n) +
                           " over " + std::to_string(z.groups) + " groups",
                       z.rows, z.length, width * z.n, part, expected);
}

}  // namespace

std::vector<OpCase> recurrent_op_cases() {
    return {conv(41, 9, 9, 37, 4),
            conv(42, 12, 3, 20, 4), // sequences shorter than what the next step would see of them
            conv(43, 5, 5, 16, 3),
            scan(44, {11, 11, 4, 6, 2, 13}),
            scan(45, {12, 4, 2, 8, 1, 16}),
            scan(46, {70, 70, 1, 3, 1, 5})};
}

}  // namespace patchbay::conformance
