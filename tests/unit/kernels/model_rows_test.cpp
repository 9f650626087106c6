// Row operations of models beyond Llama's kind, and mixtures of experts.
#include <numeric>

#include "guarded.hpp"
#include "kernels/reference.hpp"

namespace patchbay::kernels::model_rows_test {
namespace {

class ModelRows : public EachIsa {
  protected:
    Machine machine{GetParam(), {}};
    Random random{23};

    // f on poisoned rows of x in place agrees with `want`, and touches nothing else.
    template <class F, class G>
    void check_in_place(F&& kernel, G&& reference, float spread, double absolute, double relative) {
        for (int i = 0; i < 30; ++i) {
            const int64_t rows = random.between(1, 6), n = random.between(1, 200);
            std::vector<float> want = random.values(rows * n, spread);
            Poisoned x(rows, n, random.between(0, 5));
            x.fill(want);
            kernel(x.view());
            reference(want.data(), rows * n);
            expect_near(x.values(), want, absolute, relative);
            EXPECT_TRUE(x.intact());
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Isa, ModelRows, each_isa(), isa_test_name);

TEST_P(ModelRows, LayerNormAgreesWithTheReferenceAlsoFarFromZero) {
    for (int i = 0; i < 40; ++i) {
        const int64_t rows = random.between(1, 6), n = random.between(1, 300);
        std::vector<float> x = random.values(rows * n, 3.0f);
        if (i % 2) // a mean that is large beside what is left without it
            for (float& v : x) v += 100;
        const std::vector<float> w = random.values(n), b = random.values(n);
        std::vector<float> want(x.size());
        reference::layer_norm(want.data(), x.data(), w.data(), b.data(), rows, n, 1e-5f);
        Poisoned out(rows, n), in(rows, n, 1);
        in.fill(x);
        layer_norm(machine, out.view(), in.view(), w.data(), b.data(), 1e-5f);
        expect_near(out.values(), want, n > 1 && i % 2 ? 2e-4 : 3e-6, 1e-5);
        EXPECT_TRUE(out.intact());
        layer_norm(machine, in.view(), in.view(), w.data(), b.data(), 1e-5f); // in place
        EXPECT_EQ(in.values(), out.values());
    }
}

TEST_P(ModelRows, ReluAndScaleAreExact) {
    check_in_place([&](const pb_tensor& x) { relu(machine, x); }, reference::relu, 2, 0, 0);
    check_in_place([&](const pb_tensor& x) { scale(machine, x, 0.3f); },
                   [](float* x, int64_t n) { reference::scale(x, 0.3f, n); }, 2, 0, 0);
}

TEST_P(ModelRows, ReluLetsNanThrough) {
    Poisoned x(1, 5);
    x.fill({-1, std::nanf(""), 2, -0.5f, 0});
    relu(machine, x.view());
    EXPECT_EQ(x.row(0)[0], 0);
    EXPECT_TRUE(std::isnan(x.row(0)[1]));
    EXPECT_EQ(x.row(0)[2], 2);
}

TEST_P(ModelRows, GeluAgreesWithTheReferenceFarFromZeroToo) {
    check_in_place([&](const pb_tensor& x) { gelu_tanh(machine, x); }, reference::gelu_tanh, 1, 1e-12, 4e-6);
    check_in_place([&](const pb_tensor& x) { gelu_tanh(machine, x); }, reference::gelu_tanh, 20, 1e-12, 4e-6);
    for (int i = 0; i < 30; ++i) {
        const int64_t rows = random.between(1, 6), n = random.between(1, 200);
        const std::vector<float> x = random.values(rows * 2 * n, i % 2 ? 1.0f : 8.0f);
        std::vector<float> want(static_cast<size_t>(rows * n));
        reference::gelu_tanh_mul(want.data(), x.data(), rows, n);
        Poisoned out(rows, n), in(rows, 2 * n);
        in.fill(x);
        gelu_tanh_mul(machine, out.view(), in.view());
        expect_near(out.values(), want, 1e-11, 4e-6);
        EXPECT_TRUE(out.intact());
    }
}

TEST_P(ModelRows, ExactGeluAndSiluAgreeWithTheReferenceFarFromZeroToo) {
    for (const float spread : {1.0f, 20.0f}) {
        check_in_place([&](const pb_tensor& x) { gelu_erf(machine, x); }, reference::gelu_erf, spread, 1e-12, 4e-6);
        check_in_place([&](const pb_tensor& x) { silu(machine, x); }, reference::silu, spread, 1e-12, 4e-6);
    }
    for (int i = 0; i < 30; ++i) {
        const int64_t rows = random.between(1, 6), n = random.between(1, 200);
        const std::vector<float> x = random.values(rows * 2 * n, i % 2 ? 1.0f : 8.0f);
        std::vector<float> want(static_cast<size_t>(rows * n));
        reference::gelu_erf_mul(want.data(), x.data(), rows, n);
        Poisoned out(rows, n), in(rows, 2 * n);
        in.fill(x);
        gelu_erf_mul(machine, out.view(), in.view());
        expect_near(out.values(), want, 1e-11, 4e-6);
        EXPECT_TRUE(out.intact());
    }
}

TEST_P(ModelRows, ClampedSwigluAgreesWithTheReferenceInsideAndOutsideOfItsLimit) {
    for (int i = 0; i < 30; ++i) {
        const int64_t rows = random.between(1, 6), n = random.between(1, 200);
        const std::vector<float> x = random.values(rows * 2 * n, i % 2 ? 2.0f : 20.0f);
        std::vector<float> want(static_cast<size_t>(rows * n));
        reference::swiglu_oai(want.data(), x.data(), rows, n, 1.702f, 7);
        Poisoned out(rows, n), in(rows, 2 * n);
        in.fill(x);
        swiglu_oai(machine, out.view(), in.view(), 1.702f, 7);
        expect_near(out.values(), want, 1e-11, 4e-6);
        EXPECT_TRUE(out.intact());
    }
}

TEST_P(ModelRows, ClampedSwigluLetsNanThrough) {
    Poisoned out(1, 3), in(1, 6);
    in.fill({1, std::nanf(""), 2, 3, 4, std::nanf("")});
    swiglu_oai(machine, out.view(), in.view(), 1.702f, 7);
    EXPECT_NEAR(out.row(0)[0], 4 / (1 + std::exp(-1.702)), 1e-5);
    EXPECT_TRUE(std::isnan(out.row(0)[1]));
    EXPECT_TRUE(std::isnan(out.row(0)[2]));
}

TEST_P(ModelRows, ActivationsLetNanThrough) {
    for (const auto op : {silu, gelu_erf}) {
        Poisoned x(1, 3);
        x.fill({1, std::nanf(""), -2});
        op(machine, x.view());
        EXPECT_TRUE(std::isfinite(x.row(0)[0]));
        EXPECT_TRUE(std::isnan(x.row(0)[1]));
        EXPECT_TRUE(std::isfinite(x.row(0)[2]));
    }
}

TEST_P(ModelRows, ActivationsKeepInfinity) {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const auto op : {silu, gelu_erf}) {
        Poisoned x(1, 3);
        x.fill({1, infinity, 1e30f});
        op(machine, x.view());
        EXPECT_EQ(x.row(0)[1], infinity);
        EXPECT_EQ(x.row(0)[2], 1e30f);
    }
}

TEST_P(ModelRows, SigmoidMulTakesAGateForEachElementOrOneForARow) {
    for (int i = 0; i < 30; ++i) {
        const int64_t rows = random.between(1, 6), n = random.between(1, 200), gates = i % 2 ? n : 1;
        const std::vector<float> x = random.values(rows * n), by = random.values(rows * gates, 9.0f);
        std::vector<float> want = x;
        reference::sigmoid_mul(want.data(), by.data(), rows, n, gates);
        Poisoned out(rows, n), gate(rows, gates, 1);
        out.fill(x);
        gate.fill(by);
        sigmoid_mul(machine, out.view(), gate.view());
        expect_near(out.values(), want, 1e-12, 4e-6);
        EXPECT_TRUE(out.intact());
    }
}

TEST_P(ModelRows, SoftCapBendsLargeValuesAndKeepsSmallOnes) {
    for (const float spread : {0.1f, 5.0f, 500.0f})
        check_in_place([&](const pb_tensor& x) { soft_cap(machine, x, 30); },
                       [](float* x, int64_t n) { reference::soft_cap(x, 30, n); }, spread, 30 * 3e-7, 2e-7);
}

TEST_P(ModelRows, TopKFindsTheGreatestAndTheirSharesOfTheSoftmax) {
    for (int i = 0; i < 60; ++i) {
        const int64_t rows = random.between(1, 5), n = random.between(1, 70), k = random.between(1, n);
        const std::vector<float> x = random.values(rows * n, i % 2 ? 1.0f : 12.0f);
        std::vector<int32_t> ids(size_t(rows * k)), want_ids(ids.size());
        std::vector<float> want(ids.size());
        const bool sum_to_one = i % 3 == 0;
        reference::top_k(want_ids.data(), want.data(), x.data(), rows, k, n, sum_to_one ? 1 : 0);
        Poisoned weights(rows, k), logits(rows, n);
        logits.fill(x);
        top_k(machine, tensor(ids.data(), PB_I32, {rows, k}), weights.view(), logits.view(),
              sum_to_one ? Normalise::kSumToOne : Normalise::kNo);
        EXPECT_EQ(ids, want_ids);
        expect_near(weights.values(), want, 1e-37, 3e-6);
        EXPECT_TRUE(weights.intact());
    }
}

TEST_P(ModelRows, TopKPrefersTheLowerIndexOfEquals) {
    Poisoned weights(1, 3), logits(1, 6);
    logits.fill({1, 7, 2, 7, 2, 7});
    std::vector<int32_t> ids(3);
    top_k(machine, tensor(ids.data(), PB_I32, {1, 3}), weights.view(), logits.view(), Normalise::kSumToOne);
    EXPECT_EQ(ids, (std::vector<int32_t>{1, 3, 5}));
    expect_near(weights.values(), {1 / 3.0f, 1 / 3.0f, 1 / 3.0f}, 0, 1e-6);
}

TEST_P(ModelRows, WeightedSumAddsInOrder) {
    for (int i = 0; i < 20; ++i) {
        const int64_t rows = random.between(1, 5), k = random.between(1, 8), n = random.between(1, 100);
        const std::vector<float> x = random.values(rows * k * n), w = random.values(rows * k);
        std::vector<float> want(size_t(rows * n));
        reference::weighted_sum(want.data(), x.data(), w.data(), rows, k, n);
        Poisoned out(rows, n), in(rows, k * n), weights(rows, k);
        in.fill(x);
        weights.fill(w);
        weighted_sum(machine, out.view(), in.heads_view(k), weights.view());
        expect_near(out.values(), want, 3e-6, 3e-6);
        EXPECT_TRUE(out.intact());
    }
}

// (experts, rows, cols) as packed matrices, and linear() of them by the reference.
struct Experts {
    Experts(Random& random, const Machine& machine, int64_t count, int64_t out, int64_t in, pb_dtype dtype)
        : rows(out), cols(in) {
        for (int64_t e = 0; e < count; ++e) {
            values.push_back(rounded_to_bf16(random.values(rows * cols)));
            const std::vector<uint16_t> bits = to_bf16(values.back());
            const void* data = dtype == PB_BF16 ? static_cast<const void*>(bits.data()) : values.back().data();
            packed.push_back(PackedMatrix::pack(machine, dtype, rows, cols, data, nullptr));
        }
        for (const PackedMatrix& m : packed) pointers.push_back(&m);
    }
    int64_t rows, cols;
    std::vector<std::vector<float>> values;
    std::vector<PackedMatrix> packed;
    std::vector<const PackedMatrix*> pointers;
};

TEST_P(ModelRows, ExpertLinearSendsEachRowToItsExpert) {
    for (int i = 0; i < 24; ++i) {
        const int64_t tokens = random.between(1, 40), k = random.between(1, 4), count = random.between(1, 9);
        const int64_t fan = i % 2 ? 1 : k; // one row of x for all j, or one each
        const Experts experts(random, machine, count, random.between(1, 70), random.between(1, 90),
                              i % 3 ? PB_F32 : PB_BF16);
        const std::vector<float> x = rounded_to_bf16(random.values(tokens * fan * experts.cols));
        std::vector<int32_t> ids(size_t(tokens * k));
        for (int32_t& id : ids) id = int32_t(random.between(0, count - 1));
        std::vector<float> want(size_t(tokens * k * experts.rows));
        for (int64_t p = 0; p < tokens * k; ++p) {
            const int64_t row = fan == 1 ? p / k : p;
            reference::linear(want.data() + p * experts.rows, x.data() + row * experts.cols,
                              experts.values[size_t(ids[size_t(p)])].data(), nullptr, 1, experts.rows, experts.cols);
        }
        Poisoned out(tokens, k * experts.rows), in(tokens, fan * experts.cols);
        in.fill(x);
        Scratch scratch, rows;
        Machine with = machine;
        with.scratch = &scratch;
        expert_linear(with, rows, out.heads_view(k), in.heads_view(fan), experts.pointers.data(), uint32_t(count),
                      ids.data());
        expect_near(out.values(), want, 1e-4, 1e-5);
        EXPECT_TRUE(out.intact());
    }
}

TEST_P(ModelRows, ExpertLinearGivesARowTheSameBitsWhateverElseGoesToItsExpert) {
    for (const pb_dtype dtype : {PB_F32, PB_BF16}) {
        const int64_t tokens = 37, k = 2, count = 3;
        const Experts experts(random, machine, count, 48, 65, dtype);
        const std::vector<float> x = random.values(tokens * experts.cols);
        std::vector<int32_t> ids(size_t(tokens * k));
        for (int32_t& id : ids) id = int32_t(random.between(0, count - 1));
        Scratch scratch, rows;
        Machine with{GetParam(), backwards_crew(8), &scratch};
        Poisoned all(tokens, k * experts.rows), in(tokens, experts.cols);
        in.fill(x);
        expert_linear(with, rows, all.heads_view(k), in.heads_view(1), experts.pointers.data(), count, ids.data());
        with.workers = {};
        for (int64_t t = 0; t < tokens; ++t) {
            Poisoned alone(1, k * experts.rows), one(1, experts.cols);
            one.fill({x.begin() + t * experts.cols, x.begin() + (t + 1) * experts.cols});
            expert_linear(with, rows, alone.heads_view(k), one.heads_view(1), experts.pointers.data(), count,
                          ids.data() + t * k);
            EXPECT_TRUE(same_bits(alone.row(0), all.row(t), k * experts.rows)) << "token " << t;
        }
    }
}

TEST_P(ModelRows, GiveTheSameBitsForAnyNumberOfThreads) {
    ThreadPool pool(3);
    const int64_t rows = 150, n = 1000;
    const std::vector<float> x = random.values(rows * 2 * n), w = random.values(n);
    const auto results = [&](const Workers& workers) {
        const Machine with{GetParam(), workers};
        Poisoned in(rows, 2 * n), out(rows, n);
        in.fill(x);
        gelu_tanh_mul(with, out.view(), in.view());
        layer_norm(with, out.view(), out.view(), w.data(), w.data(), 1e-6f);
        soft_cap(with, out.view(), 2);
        gelu_tanh(with, out.view());
        return out.values();
    };
    const std::vector<float> want = results({});
    EXPECT_EQ(results(crew_of(pool.service())), want);
    EXPECT_EQ(results(backwards_crew(32)), want);
}

}  // namespace
}  // namespace patchbay::kernels::model_rows_test
