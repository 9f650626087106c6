// Ops that carry states: against the reference from a sequence's first row on, however its rows are dealt out to calls
// and the rest of the batch.
#include <algorithm>
#include <numeric>

#include "guarded.hpp"
#include "kernels/reference.hpp"

namespace patchbay::kernels::recurrent_test {
namespace {

constexpr int64_t kOffset = 4; // floats in front of a state
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Sequences, of which some rows are computed by each call; their states lie in pages in another order.
struct Plan {
    std::vector<int64_t> lengths;
    std::vector<std::vector<int64_t>> calls; // rows of each sequence, by call
};

Plan at_once(const std::vector<int64_t>& lengths) { return {lengths, {lengths}}; }

Plan in_chunks(const std::vector<int64_t>& lengths, Random& random) {
    Plan plan{lengths, {}};
    for (std::vector<int64_t> left = lengths; std::any_of(left.begin(), left.end(), [](int64_t n) { return n > 0; });) {
        std::vector<int64_t>& call = plan.calls.emplace_back();
        for (int64_t& n : left) {
            call.push_back(std::min(n, random.between(0, 5)));
            n -= call.back();
        }
    }
    return plan;
}

// Runs f(rows of the whole input, a States) once a call; rows: of all sequences, one after another.
template <class F>
void each_call(const Plan& plan, int64_t floats, F&& f) {
    const auto count = static_cast<int64_t>(plan.lengths.size());
    const int64_t stride = (kOffset + floats + 15) / 16 * 16 + 16;
    std::vector<float> memory(static_cast<size_t>((2 * count + 1) * stride), kNaN);
    std::vector<int64_t> done(plan.lengths.size(), 0), firsts;
    for (int64_t s = 0, first = 0; s < count; first += plan.lengths[size_t(s++)]) firsts.push_back(first);
    for (const auto& call : plan.calls) {
        std::vector<int32_t> pages, starts = {0}, begins;
        std::vector<int64_t> rows;
        for (size_t s = 0; s < call.size(); ++s) {
            pages.push_back(int32_t(2 * (count - int64_t(s)) - 1));
            begins.push_back(done[s] == 0);
            for (int64_t i = 0; i < call[s]; ++i) rows.push_back(firsts[s] + done[s]++);
            starts.push_back(int32_t(rows.size()));
        }
        const States states{.data = reinterpret_cast<uint8_t*>(memory.data()),
                            .page_stride = uint64_t(stride) * 4,
                            .offset = kOffset * 4,
                            .sequences = count,
                            .pages = pages.data(),
                            .query_starts = starts.data(),
                            .is_first_chunk = begins.data()};
        f(rows, states);
    }
    for (int64_t p = 0; p < 2 * count + 1; ++p)
        for (int64_t i = 0; i < stride; ++i)
            if (p % 2 == 0 || i < kOffset || i >= kOffset + floats) {
                ASSERT_TRUE(std::isnan(memory[size_t(p * stride + i)])) << "page " << p << " at " << i;
            }
}

std::vector<float> take(const std::vector<float>& all, const std::vector<int64_t>& rows, int64_t n) {
    std::vector<float> out;
    for (const int64_t r : rows) out.insert(out.end(), all.begin() + r * n, all.begin() + (r + 1) * n);
    return out;
}

void put(std::vector<float>& all, const std::vector<int64_t>& rows, int64_t n, const std::vector<float>& values) {
    for (size_t i = 0; i < rows.size(); ++i)
        std::copy_n(values.begin() + int64_t(i) * n, n, all.begin() + rows[i] * n);
}

int64_t sum(const std::vector<int64_t>& v) { return std::accumulate(v.begin(), v.end(), int64_t{0}); }

class Recurrent : public EachIsa {
  protected:
    std::vector<Machine> machines() const {
        return {{GetParam(), {}}, {GetParam(), backwards_crew(3)}, {GetParam(), backwards_crew(16)}};
    }
    Random random{29};
};
INSTANTIATE_TEST_SUITE_P(Isa, Recurrent, each_isa(), isa_test_name);

TEST_P(Recurrent, ConvolutionSeesTheRowsBeforeItWhereverTheyWereComputed) {
    for (int i = 0; i < 12; ++i) {
        const int64_t n = i == 0 ? 1100 : random.between(1, 70), width = random.between(2, kMaxTaps);
        const std::vector<int64_t> lengths = {random.between(1, 20), 1, random.between(1, 9)};
        const int64_t rows = sum(lengths);
        const std::vector<float> x = random.values(rows * n), w = random.values(n * width), b = random.values(n);
        const float* const bias = i % 2 ? b.data() : nullptr;
        std::vector<float> want(x.size());
        for (int64_t s = 0, first = 0; s < 3; first += lengths[size_t(s++)])
            reference::causal_conv_silu(want.data() + first * n, x.data() + first * n, w.data(), bias,
                                        lengths[size_t(s)], n, width);
        std::vector<float> first_bits;
        for (const Machine& machine : machines())
            for (const Plan& plan : {at_once(lengths), in_chunks(lengths, random)}) {
                std::vector<float> got(x.size(), kNaN);
                each_call(plan, (width - 1) * n, [&](const std::vector<int64_t>& which, const States& states) {
                    Poisoned in(int64_t(which.size()), n), out(int64_t(which.size()), n, 5);
                    in.fill(take(x, which, n));
                    causal_conv_silu(machine, out.view(), in.view(), w.data(), bias, width, states);
                    EXPECT_TRUE(out.intact());
                    put(got, which, n, out.values());
                });
                expect_near(got, want, 1e-5, 1e-5);
                if (first_bits.empty()) first_bits = got;
                EXPECT_TRUE(same_bits(got.data(), first_bits.data(), int64_t(got.size())));
            }
    }
}

TEST_P(Recurrent, ScanGoesOnFromTheStateThatItLeft) {
    for (int i = 0; i < 12; ++i) {
        const int64_t groups = random.between(1, 3), heads = groups * random.between(1, 3), dim = random.between(1, 9),
                      n = random.between(1, 40);
        const std::vector<int64_t> lengths = {random.between(1, 12), i == 0 ? 150 : 1, random.between(1, 9)};
        const int64_t rows = sum(lengths);
        const std::vector<float> x = random.values(rows * heads * dim), dt = random.values(rows * heads, 3),
                                 b = random.values(rows * groups * n), c = random.values(rows * groups * n),
                                 a_log = random.values(heads), dt_bias = random.values(heads),
                                 skip = random.values(heads);
        const float max_step = i % 2 ? 1.5f : std::numeric_limits<float>::infinity(), min_step = i % 3 ? 0.0f : 0.1f;
        std::vector<float> want(x.size());
        for (int64_t s = 0, at = 0; s < 3; at += lengths[size_t(s++)])
            reference::ssm_scan(want.data() + at * heads * dim, x.data() + at * heads * dim, dt.data() + at * heads,
                                b.data() + at * groups * n, c.data() + at * groups * n, a_log.data(), dt_bias.data(),
                                skip.data(), {lengths[size_t(s)], heads, dim, groups, n, min_step, max_step});
        std::vector<float> first_bits;
        for (const Machine& machine : machines())
            for (const Plan& plan : {at_once(lengths), in_chunks(lengths, random)}) {
                std::vector<float> got(x.size(), kNaN);
                each_call(plan, heads * dim * n, [&](const std::vector<int64_t>& which, const States& states) {
                    const auto count = int64_t(which.size());
                    Poisoned in(count, heads * dim), steps(count, heads), bs(count, groups * n), cs(count, groups * n),
                        out(count, heads * dim, 1);
                    in.fill(take(x, which, heads * dim));
                    steps.fill(take(dt, which, heads));
                    bs.fill(take(b, which, groups * n));
                    cs.fill(take(c, which, groups * n));
                    const Scan scan{a_log.data(), dt_bias.data(), skip.data(), min_step, max_step};
                    ssm_scan(machine, out.heads_view(heads), in.heads_view(heads), steps.view(), bs.heads_view(groups),
                             cs.heads_view(groups), scan, states);
                    EXPECT_TRUE(out.intact());
                    put(got, which, heads * dim, out.values());
                });
                expect_near(got, want, 1e-4, 1e-4);
                if (first_bits.empty()) first_bits = got;
                EXPECT_TRUE(same_bits(got.data(), first_bits.data(), int64_t(got.size())));
            }
    }
}

TEST_P(Recurrent, ScanInPlaceAndWithoutAPage) {
    const int64_t heads = 2, dim = 3, n = 4;
    std::vector<float> memory(64, 0.0f);
    const std::vector<int32_t> pages = {-1, 0}, starts = {0, 2, 3}, begins = {1, 1};
    const States states{.data = reinterpret_cast<uint8_t*>(memory.data()), .page_stride = 256, .sequences = 2,
                        .pages = pages.data(), .query_starts = starts.data(), .is_first_chunk = begins.data()};
    const std::vector<float> values = random.values(18), zeros(2, 0.0f), skip = {1, 1};
    Poisoned x(3, heads * dim), dt(3, heads), b(3, n), c(3, n);
    x.fill(values);
    dt.fill(random.values(6));
    b.fill(random.values(12));
    c.fill(std::vector<float>(12, 0.0f)); // so that nothing but the skip comes out
    ssm_scan({GetParam(), {}}, x.heads_view(heads), x.heads_view(heads), dt.view(), b.heads_view(1), c.heads_view(1),
             {zeros.data(), zeros.data(), skip.data(), 0, 1}, states);
    EXPECT_EQ(x.values(), values);
    EXPECT_TRUE(x.intact());
    EXPECT_NE(memory[0], 0);
    EXPECT_EQ(memory[size_t(heads * dim * n)], 0);
}

}  // namespace
}  // namespace patchbay::kernels::recurrent_test
