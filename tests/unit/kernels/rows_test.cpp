#include "guarded.hpp"

#include "kernels/reference.hpp"

namespace patchbay::kernels::rows_test {
namespace {

class Rows : public EachIsa {
  protected:
    Machine machine{GetParam(), {}};
    Random random{11};
};
INSTANTIATE_TEST_SUITE_P(Isa, Rows, each_isa(), isa_test_name);

TEST_P(Rows, RmsNormAgreesWithTheReferenceAlsoByHead) {
    for (int i = 0; i < 40; ++i) {
        const int64_t rows = random.between(1, 6), heads = random.between(1, 4), n = random.between(1, 300);
        const std::vector<float> x = random.values(rows * heads * n, 3.0f), w = random.values(n);
        std::vector<float> want(x.size());
        reference::rms_norm(want.data(), x.data(), w.data(), rows * heads, n, 1e-5f);
        Poisoned out(rows, heads * n), in(rows, heads * n, 1);
        in.fill(x);
        rms_norm(machine, out.heads_view(heads), in.heads_view(heads), w.data(), 1e-5f);
        expect_near(out.values(), want, 1e-7, 2e-6);
        EXPECT_TRUE(out.intact());
        rms_norm(machine, in.heads_view(heads), in.heads_view(heads), w.data(), 1e-5f); // in place
        EXPECT_EQ(in.values(), out.values());
    }
}

TEST_P(Rows, AddRmsNormKeepsTheSumAndNormalisesIt) {
    for (int i = 0; i < 20; ++i) {
        const int64_t rows = random.between(1, 6), n = random.between(1, 300);
        std::vector<float> residual = random.values(rows * n), want(residual.size());
        const std::vector<float> x = random.values(rows * n), w = random.values(n);
        Poisoned out(rows, n), sum(rows, n), in(rows, n);
        sum.fill(residual);
        in.fill(x);
        reference::add_rms_norm(want.data(), residual.data(), x.data(), w.data(), rows, n, 1e-6f);
        add_rms_norm(machine, out.view(), sum.view(), in.view(), w.data(), 1e-6f);
        expect_near(out.values(), want, 1e-7, 2e-6);
        EXPECT_EQ(sum.values(), residual);
        EXPECT_TRUE(out.intact() && sum.intact());
    }
}

TEST_P(Rows, RopeTurnsPairsAtNearAndFarPositions) {
    for (int i = 0; i < 40; ++i) {
        const int64_t tokens = random.between(1, 4), heads = random.between(1, 3), half = random.between(1, 40);
        const int64_t head_dim = 2 * half + random.between(0, 9);
        std::vector<float> x = random.values(tokens * heads * head_dim), inv_freq;
        for (int64_t k = 0; k < half; ++k) inv_freq.push_back(float(std::pow(10000.0, -double(k) / double(half))));
        std::vector<int32_t> positions;
        for (int64_t t = 0; t < tokens; ++t) positions.push_back(int32_t(random.between(0, i % 2 ? 1000000 : 100)));
        Poisoned got(tokens, heads * head_dim);
        got.fill(x);
        rope(machine, got.heads_view(heads), positions.data(), inv_freq.data(), half, 1.25f);
        reference::rope(x.data(), positions.data(), inv_freq.data(), tokens, heads, head_dim, 2 * half, 1.25f);
        expect_near(got.values(), x, 3e-6, 1e-6);
        EXPECT_TRUE(got.intact());
    }
}

TEST_P(Rows, RopeTurnsEveryHeadOfATokenAlike) {
    const std::vector<float> inv_freq = {1.0f, 0.1f, 0.01f, 0.001f};
    const std::vector<float> head = random.values(8);
    std::vector<float> x;
    for (int h = 0; h < 5; ++h) x.insert(x.end(), head.begin(), head.end());
    Poisoned got(1, 40);
    got.fill(x);
    const int32_t position = 37;
    rope(machine, got.heads_view(5), &position, inv_freq.data(), 4, 1.0f);
    for (int h = 1; h < 5; ++h) EXPECT_TRUE(same_bits(got.row(0), got.row(0) + 8 * h, 8));
}

TEST_P(Rows, SiluMulAgreesWithTheReferenceFarFromZeroToo) {
    for (int i = 0; i < 40; ++i) {
        const int64_t rows = random.between(1, 6), n = random.between(1, 200);
        const std::vector<float> x = random.values(rows * 2 * n, i % 2 ? 1.0f : 25.0f);
        std::vector<float> want(static_cast<size_t>(rows * n));
        reference::silu_mul(want.data(), x.data(), rows, n);
        Poisoned out(rows, n), in(rows, 2 * n);
        in.fill(x);
        silu_mul(machine, out.view(), in.view());
        expect_near(out.values(), want, 1e-35, 1.5e-6);
        EXPECT_TRUE(out.intact());
    }
}

TEST_P(Rows, AddAndGatherRowsAreExact) {
    const std::vector<float> x = random.values(7 * 53), y = random.values(7 * 53);
    Poisoned a(7, 53), b(7, 53, 0), picked(4, 53);
    a.fill(x);
    b.fill(y);
    const std::vector<int32_t> rows = {6, 0, 0, 3};
    gather_rows(machine, picked.view(), a.view(), rows.data());
    for (int r = 0; r < 4; ++r) EXPECT_TRUE(same_bits(picked.row(r), a.row(rows[size_t(r)]), 53));
    add(machine, a.view(), b.view());
    std::vector<float> want = x;
    reference::add(want.data(), y.data(), 7 * 53);
    EXPECT_EQ(a.values(), want);
    EXPECT_TRUE(a.intact() && picked.intact());
}

TEST_P(Rows, ExpKeepsItsStatedError) {
    std::vector<float> x;
    for (double v = -87.3; v < 88.3; v += 0.00173) x.push_back(float(v));
    x.insert(x.end(), {0.0f, -0.0f, 1e-30f, -1e-30f});
    std::vector<float> got(x.size());
    exp(GetParam(), got.data(), x.data(), int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
        const double want = std::exp(double(x[i]));
        ASSERT_LE(std::abs(got[i] - want), 3e-7 * want) << x[i];
    }
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float ends[] = {-88.0f, -1e30f, -kInfinity, 100.0f, kInfinity, std::nanf("")};
    float out[6];
    exp(GetParam(), out, ends, 6);
    EXPECT_EQ(out[0], 0.0f);
    EXPECT_EQ(out[1], 0.0f);
    EXPECT_EQ(out[2], 0.0f);
    EXPECT_GT(out[3], 2e38f);
    EXPECT_GT(out[4], 2e38f);
    EXPECT_TRUE(std::isnan(out[5]));
}

TEST_P(Rows, GiveTheSameBitsForAnyNumberOfThreads) {
    ThreadPool pool(3);
    const int64_t rows = 150, n = 1000;
    const std::vector<float> x = random.values(rows * 2 * n), w = random.values(n);
    const auto results = [&](const Workers& workers) {
        const Machine with{GetParam(), workers};
        Poisoned in(rows, 2 * n), out(rows, n);
        in.fill(x);
        silu_mul(with, out.view(), in.view());
        rms_norm(with, out.view(), out.view(), w.data(), 1e-6f);
        return out.values();
    };
    const std::vector<float> want = results({});
    EXPECT_EQ(results(crew_of(pool.service())), want);
    EXPECT_EQ(results(backwards_crew(32)), want);
}

TEST(IsaChoice, TakesTheBestLevelUnlessItIsLowered) {
    const Isa best = available_isas().back();
    EXPECT_EQ(choose_isa("auto", nullptr).isa, best);
    EXPECT_EQ(choose_isa("auto", "").isa, best);
    EXPECT_EQ(choose_isa("auto", "plain").isa, Isa::Plain);
    EXPECT_EQ(choose_isa("plain", nullptr).isa, Isa::Plain);
}

TEST(IsaChoice, IsNeverRaisedByTheEnvironment) {
    for (const Isa isa : available_isas()) EXPECT_EQ(choose_isa("plain", isa_name(isa)).isa, Isa::Plain);
}

TEST(IsaChoice, SaysWhyItRefuses) {
    const IsaChoice unknown = choose_isa("auto", "sse9");
    EXPECT_EQ(unknown.verdict, IsaChoice::Verdict::Unknown);
    EXPECT_EQ(unknown.reason, "PATCHBAY_CPU_ISA: unknown level 'sse9', expected plain, avx2, avx512 or amx");
    if (available_isas().back() == Isa::Amx) GTEST_SKIP() << "this machine has every level";
    const IsaChoice missing = choose_isa("amx", nullptr);
    EXPECT_EQ(missing.verdict, IsaChoice::Verdict::Unavailable);
    EXPECT_NE(missing.reason.find("amx asked for"), std::string::npos);
}

}  // namespace
}  // namespace patchbay::kernels::rows_test
