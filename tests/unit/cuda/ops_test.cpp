// Each CUDA kernel of the ops table against the reference.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/cuda.hpp"
#include "kernels/reference.hpp"
#include "unit/cuda/values.hpp"

namespace patchbay::kernels::cuda::ops_test {
namespace {

class CudaOps : public testing::TestWithParam<pb_dtype> {
  protected:
    pb_dtype dtype() const { return GetParam(); }
    Floats input(uint64_t seed, int64_t count, float spread = 2) const {
        return rounded(dtype(), noise(seed, size_t(count), -spread, spread));
    }
    void expect_near(const Values& got, const Floats& expected) const {
        EXPECT_TRUE(got.padding_is_untouched());
        const auto values = got.dense();
        ASSERT_EQ(values.size(), expected.size());
        const double near = dtype() == PB_BF16 ? 1e-2 : 2e-6;
        for (size_t i = 0; i < values.size(); ++i)
            ASSERT_NEAR(values[i], expected[i], near * (1 + std::abs(expected[i]))) << "value " << i;
    }
};

TEST_P(CudaOps, RmsNormNormsRowsOfEveryWidth) {
    for (const int64_t n : {1, 31, 67, 300, 3000}) {
        const auto x = input(1, 3 * n), w = noise(2, size_t(n));
        Floats expected(x.size());
        reference::rms_norm(expected.data(), x.data(), w.data(), 3, n, 1e-5f);
        Values in(dtype(), {3, n}, x), out(dtype(), {3, n});
        rms_norm(nullptr, out.tensor(), in.tensor(), w.data(), 1e-5f);
        expect_near(out, expected);
        rms_norm(nullptr, in.tensor(), in.tensor(), w.data(), 1e-5f); // in place
        EXPECT_EQ(in.dense(), out.dense());
    }
}

TEST_P(CudaOps, RmsNormNormsEachHead) {
    const auto x = input(3, 4 * 3 * 16), w = noise(4, 16);
    Floats expected(x.size());
    reference::rms_norm(expected.data(), x.data(), w.data(), 12, 16, 1e-6f);
    Values in(dtype(), {4, 3, 16}, x), out(dtype(), {4, 3, 16});
    rms_norm(nullptr, out.tensor(), in.tensor(), w.data(), 1e-6f);
    expect_near(out, expected);
}

TEST_P(CudaOps, AddRmsNormKeepsTheSum) {
    const int64_t n = 130;
    const auto x = input(5, 2 * n), r = input(6, 2 * n), w = noise(7, size_t(n));
    Floats sum(x.size()), expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) sum[i] = rounded(dtype(), x[i] + r[i]);
    reference::rms_norm(expected.data(), sum.data(), w.data(), 2, n, 1e-5f);
    Values in(dtype(), {2, n}, x), residual(dtype(), {2, n}, r), out(dtype(), {2, n});
    add_rms_norm(nullptr, out.tensor(), residual.tensor(), in.tensor(), w.data(), 1e-5f);
    EXPECT_EQ(residual.dense(), sum);
    expect_near(out, expected);
}

TEST_P(CudaOps, LayerNormSubtractsTheMean) {
    const int64_t n = 77;
    auto x = input(8, 3 * n);
    for (float& v : x) v = rounded(dtype(), v + 10);
    const auto w = noise(9, size_t(n)), b = noise(10, size_t(n));
    Floats expected(x.size());
    reference::layer_norm(expected.data(), x.data(), w.data(), b.data(), 3, n, 1e-5f);
    Values in(dtype(), {3, n}, x), out(dtype(), {3, n});
    layer_norm(nullptr, out.tensor(), in.tensor(), w.data(), b.data(), 1e-5f);
    expect_near(out, expected);
}

TEST_P(CudaOps, RopeTurnsPairsByPosition) {
    const int64_t tokens = 5, heads = 3, dim = 24, rot = 16;
    const auto x = input(11, tokens * heads * dim);
    const Ints positions = {0, 1, 2, 131071, 63};
    Floats frequencies;
    for (int i = 0; i < rot / 2; ++i) frequencies.push_back(std::pow(10000.f, -float(i) / (rot / 2)));
    auto expected = x;
    reference::rope(expected.data(), positions.data(), frequencies.data(), tokens, heads, dim, rot, 1.25f);
    Values at(dtype(), {tokens, heads, dim}, x);
    rope(nullptr, at.tensor(), positions.data(), frequencies.data(), rot / 2, 1.25f);
    expect_near(at, expected);
}

TEST_P(CudaOps, GatesMultiplyTheTwoHalves) {
    const int64_t n = 37;
    const auto x = input(12, 4 * 2 * n, 8);
    Floats expected(size_t(4 * n));
    Values in(dtype(), {4, 2 * n}, x), out(dtype(), {4, n});
    reference::silu_mul(expected.data(), x.data(), 4, n);
    silu_mul(nullptr, out.tensor(), in.tensor());
    expect_near(out, expected);
    reference::gelu_tanh_mul(expected.data(), x.data(), 4, n);
    gelu_tanh_mul(nullptr, out.tensor(), in.tensor());
    expect_near(out, expected);
    reference::swiglu_oai(expected.data(), x.data(), 4, n, 1.702f, 5);
    swiglu_oai(nullptr, out.tensor(), in.tensor(), 1.702f, 5);
    expect_near(out, expected);
}

TEST_P(CudaOps, ElementwiseOpsWorkInPlace) {
    const int64_t n = 50;
    const auto x = input(13, 3 * n, 8), y = input(14, 3 * n);
    const auto check = [&](auto&& op, auto&& expect) {
        Values at(dtype(), {3, n}, x);
        auto expected = x;
        op(at.tensor());
        expect(expected.data(), int64_t(expected.size()));
        expect_near(at, expected);
    };
    check([](const pb_tensor& t) { relu(nullptr, t); }, reference::relu);
    check([](const pb_tensor& t) { gelu_tanh(nullptr, t); }, reference::gelu_tanh);
    check([](const pb_tensor& t) { scale(nullptr, t, 0.3f); },
          [](float* e, int64_t count) { reference::scale(e, 0.3f, count); });
    check([](const pb_tensor& t) { soft_cap(nullptr, t, 5); },
          [](float* e, int64_t count) { reference::soft_cap(e, 5, count); });
    Values other(dtype(), {3, n}, y);
    check([&](const pb_tensor& t) { add(nullptr, t, other.tensor()); },
          [&](float* e, int64_t count) { reference::add(e, y.data(), count); });
}

TEST_P(CudaOps, BiasIsAddedBeforeSumsAreRounded) {
    const int64_t n = 50;
    const auto x = noise(13, size_t(3 * n), -8, 8), bias = noise(15, size_t(n));
    Values sums(PB_F32, {3, n}, x), out(dtype(), {3, n});
    Floats expected;
    for (size_t i = 0; i < x.size(); ++i) expected.push_back(rounded(dtype(), x[i] + bias[i % size_t(n)]));
    add_bias(nullptr, out.tensor(), sums.tensor(), bias.data());
    EXPECT_EQ(out.dense(), expected);
    if (dtype() == PB_F32) {
        add_bias(nullptr, sums.tensor(), sums.tensor(), bias.data());
        EXPECT_EQ(sums.dense(), expected);
    }
}

TEST(CudaTokens, AreTakenFromThoseThatWereSampled) {
    Ints ids = {4, -1, 0, -3, -1, 7, -2}, sampled = {900, 901, 902}, fault(1, 0);
    fill_placeholders(nullptr, ids.data(), int64_t(ids.size()), sampled.data(), 3, fault.data());
    finish();
    EXPECT_EQ(ids, (Ints{4, 900, 0, 902, 900, 7, 901}));
    EXPECT_EQ(fault[0], 0);
    ids = {-4};
    fill_placeholders(nullptr, ids.data(), 1, sampled.data(), 3, fault.data());
    finish();
    EXPECT_EQ(ids[0], 0);
    EXPECT_EQ(fault[0], int32_t(KernelFault::kTakenToken));
}

TEST_P(CudaOps, PlainLinearTakesEveryMixOfDtypes) {
    const int64_t rows = 19;
    for (const int64_t tokens : {1, 2, 3, 4, 5, 8})
        for (const int64_t cols : {70, 136}) // the first is not read by lines
            for (const pb_dtype of_w : {pb_dtype{PB_F32}, pb_dtype{PB_BF16}})
                for (const pb_dtype of_out : {pb_dtype{PB_F32}, dtype()}) {
                    const auto x = input(16, tokens * cols), w = rounded(of_w, noise(17, size_t(rows * cols)));
                    const auto bias = noise(18, size_t(rows));
                    Values in(dtype(), {tokens, cols}, x, 0), out(of_out, {tokens, rows});
                    Values matrix(of_w, {rows, cols}, w, 0);
                    Floats expected(size_t(tokens * rows));
                    reference::linear(expected.data(), x.data(), w.data(), bias.data(), tokens, rows, cols);
                    const DeviceMatrix with_bias{matrix.data(), of_w, rows, cols, bias.data()};
                    plain_linear(nullptr, out.tensor(), in.tensor(), with_bias);
                    expect_near(out, expected);
                    const int64_t last = tokens - 1; // the same bits alone, on no line of 16 bytes
                    Floats shifted(size_t(cols + 1));
                    std::copy(x.begin() + last * cols, x.end(), shifted.begin() + 1);
                    Values one(dtype(), {1, cols + 1}, shifted, 0), alone(of_out, {1, rows});
                    pb_tensor view = one.tensor();
                    view.data = static_cast<uint8_t*>(view.data) + dtype_bytes(dtype());
                    view.shape[1] = cols;
                    plain_linear(nullptr, alone.tensor(), view, with_bias);
                    const auto all = out.dense();
                    EXPECT_EQ(alone.dense(), Floats(all.begin() + last * rows, all.end()));
                }
}

TEST_P(CudaOps, EmbeddingGathersRowsAndReportsIdsOutOfRange) {
    const int64_t vocab = 11, n = 20;
    const auto table = rounded(dtype(), noise(19, size_t(vocab * n)));
    Values matrix(dtype(), {vocab, n}, table, 0), out(dtype(), {4, n});
    const Ints ids = {10, 0, 3, 3}, wrong = {1, 11, -1, 2};
    Ints fault(1);
    embedding(nullptr, out.tensor(), {matrix.data(), dtype(), vocab, n, nullptr}, ids.data(), fault.data());
    Floats expected(size_t(4 * n));
    reference::embedding(expected.data(), table.data(), ids.data(), 4, n);
    EXPECT_EQ(out.dense(), expected);
    EXPECT_EQ(fault[0], 0);
    embedding(nullptr, out.tensor(), {matrix.data(), dtype(), vocab, n, nullptr}, wrong.data(), fault.data());
    finish();
    EXPECT_EQ(fault[0], int32_t(KernelFault::kEmbeddingId));
}

TEST_P(CudaOps, GatherRowsTakesStridedRows) {
    const auto x = input(20, 6 * 9);
    Values in(dtype(), {6, 9}, x), out(dtype(), {3, 9});
    const Ints rows = {5, 0, 0}, wrong = {6, 0, 0};
    Ints fault(1);
    gather_rows(nullptr, out.tensor(), in.tensor(), rows.data(), fault.data());
    Floats expected(27);
    reference::gather_rows(expected.data(), x.data(), rows.data(), 3, 9);
    EXPECT_EQ(out.dense(), expected);
    EXPECT_EQ(fault[0], 0);
    gather_rows(nullptr, out.tensor(), in.tensor(), wrong.data(), fault.data());
    finish();
    EXPECT_EQ(fault[0], int32_t(KernelFault::kGatherRow));
}

TEST_P(CudaOps, TopKTakesTheLowerIndexOfEquals) {
    const int64_t n = 41, k = 7;
    auto x = input(21, 3 * n);
    for (int i = 0; i < 6; ++i) x[size_t(i * 5)] = 3; // equals, and the greatest
    Ints ids(size_t(3 * k)), expected_ids(size_t(3 * k));
    Values logits(dtype(), {3, n}, x), weights(PB_F32, {3, k}, {}, 0);
    const pb_tensor chosen = tensor(ids.data(), PB_I32, {3, k});
    Floats expected(size_t(3 * k));
    for (const bool to_one : {false, true}) {
        reference::top_k(expected_ids.data(), expected.data(), x.data(), 3, k, n, to_one ? 1 : 0);
        top_k(nullptr, chosen, weights.tensor(), logits.tensor(), to_one);
        finish();
        EXPECT_EQ(ids, expected_ids);
        const auto got = weights.dense();
        for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
    }
}

TEST_P(CudaOps, ExpertLinearMultipliesEachRowByItsExpert) {
    const int64_t tokens = 4, k = 2, rows = 9, cols = 33;
    const uint32_t count = 3;
    const Ints ids = {0, 2, 1, 0, 2, 2, 1, 1};
    std::vector<Values> stored;
    std::vector<Floats> weights;
    Shared<DeviceMatrix> matrices;
    const auto bias = noise(22, size_t(rows));
    for (uint32_t e = 0; e < count; ++e) weights.push_back(rounded(dtype(), noise(30 + e, size_t(rows * cols))));
    for (uint32_t e = 0; e < count; ++e) stored.emplace_back(dtype(), std::vector<int64_t>{rows, cols}, weights[e], 0);
    for (const Values& v : stored) matrices.push_back({v.data(), dtype(), rows, cols, bias.data()});
    Ints fault(1);
    for (const int64_t each : {int64_t{1}, k}) {
        const auto x = input(23, tokens * each * cols);
        Values in(dtype(), {tokens, each, cols}, x), out(dtype(), {tokens, k, rows});
        expert_linear(nullptr, out.tensor(), in.tensor(), {matrices.data(), count, dtype(), rows, cols}, ids.data(),
                      fault.data());
        Floats expected(size_t(tokens * k * rows));
        for (int64_t i = 0; i < tokens * k; ++i)
            reference::linear(expected.data() + i * rows, x.data() + (each == 1 ? i / k : i) * cols,
                              weights[size_t(ids[size_t(i)])].data(), bias.data(), 1, rows, cols);
        expect_near(out, expected);
    }
    EXPECT_EQ(fault[0], 0);
}

TEST_P(CudaOps, WeightedSumAddsRows) {
    const int64_t tokens = 3, k = 4, n = 21;
    const auto x = input(24, tokens * k * n), w = noise(25, size_t(tokens * k), 0, 1);
    Values in(dtype(), {tokens, k, n}, x), out(dtype(), {tokens, n}), weights(PB_F32, {tokens, k}, w, 0);
    Floats expected(size_t(tokens * n));
    reference::weighted_sum(expected.data(), x.data(), w.data(), tokens, k, n);
    weighted_sum(nullptr, out.tensor(), in.tensor(), weights.tensor());
    expect_near(out, expected);
}

TEST_P(CudaOps, WhatRanksGatheredIsSummedOrLaidSideBySide) {
    const int64_t tokens = 3, n = 10, ranks = 4, count = tokens * n;
    const auto x = input(26, ranks * count);
    Values gathered(dtype(), {ranks * tokens, n}, x, 0), sum(dtype(), {tokens, n}, {}, 0),
        rows(dtype(), {tokens, ranks * n}, {}, 0);
    sum_ranks(nullptr, sum.tensor(), gathered.data(), uint32_t(ranks));
    lay_side_by_side(nullptr, rows.tensor(), gathered.data(), uint32_t(ranks));
    Floats expected_sum(static_cast<size_t>(count)), expected_rows(static_cast<size_t>(ranks * count));
    for (int64_t i = 0; i < ranks * count; ++i) {
        const int64_t rank = i / count, row = i / n % tokens, column = i % n;
        expected_sum[size_t(i % count)] += x[size_t(i)];
        expected_rows[size_t((row * ranks + rank) * n + column)] = x[size_t(i)];
    }
    expect_near(sum, expected_sum);
    EXPECT_EQ(rows.dense(), expected_rows);
}

TEST_P(CudaOps, OpsWithoutRowsStartNothing) {
    const Floats seven(16, 7), w(8, 1);
    Values in(dtype(), {1, 16}, seven), out(dtype(), {1, 8}, Floats(8, 7));
    pb_tensor from = in.tensor(), gate = in.tensor(), none = out.tensor(); // rows that are not theirs
    from.shape[0] = gate.shape[0] = none.shape[0] = 0;
    from.shape[1] = 8;
    Ints fault(1);
    rms_norm(nullptr, none, from, w.data(), 1e-5f);
    silu_mul(nullptr, none, gate);
    add(nullptr, none, from);
    embedding(nullptr, none, {w.data(), PB_F32, 1, 8, nullptr}, nullptr, fault.data());
    EXPECT_EQ(out.dense(), Floats(8, 7));
    EXPECT_TRUE(out.padding_is_untouched());
    EXPECT_EQ(fault[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaOps, testing::Values(PB_F32, PB_BF16),
                         [](const auto& p) { return std::string(dtype_name(p.param)); });

TEST(CudaConversion, DequantisesCodesInTheOrderOfTheColumnsOfX) {
    const int64_t rows = 3, cols = 37, group = 16, groups = 3;
    for (const pb_dtype of : {pb_dtype{PB_I8}, pb_dtype{PB_I4}}) {
        const int64_t row_bytes = of == PB_I8 ? cols : (cols + 1) / 2;
        Shared<uint8_t> codes(size_t(rows * row_bytes));
        Floats expected(size_t(rows * cols)), out(expected.size());
        const auto scales = noise(41, size_t(rows * groups), 0.1f, 1), offsets = noise(42, size_t(rows * groups));
        Ints order(static_cast<size_t>(cols));
        std::iota(order.rbegin(), order.rend(), 0);
        std::mt19937 engine(43);
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) {
                const int code = of == PB_I8 ? int(engine() % 256) - 128 : int(engine() % 16) - 8;
                uint8_t& byte = codes[size_t(r * row_bytes + (of == PB_I8 ? c : c / 2))];
                byte = uint8_t(of == PB_I8 ? code : byte | (code & 15) << (c % 2 * 4));
                const size_t g = size_t(r * groups + c / group);
                expected[size_t(r * cols + order[size_t(c)])] = float(code) * scales[g] + offsets[g];
            }
        dequantise(nullptr, out.data(), PB_F32,
                   {codes.data(), of, rows, cols, group, scales.data(), offsets.data(), order.data()});
        finish();
        for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-5) << i;
    }
}

TEST(CudaConversion, MultipliesEveryNumberOfFp8ByItsScale) {
    const int64_t rows = 2, cols = 127, group = 64; // all but the two that are NaN
    Shared<uint8_t> codes(size_t(rows * cols));
    for (int64_t i = 0; i < rows * cols; ++i) codes[size_t(i)] = uint8_t(i < cols ? i : i + 1);
    const auto scales = noise(45, 4, 0.1f, 1);
    Floats out(codes.size());
    dequantise(nullptr, out.data(), PB_F32, {codes.data(), PB_FP8, rows, cols, group, scales.data()});
    finish();
    for (int64_t i = 0; i < rows * cols; ++i)
        ASSERT_EQ(out[size_t(i)], fp8_to_f32(codes[size_t(i)]) * scales[size_t(i / cols * 2 + i % cols / group)]) << i;
}

TEST(CudaConversion, RoundsAndWidens) {
    const auto x = noise(44, 3 * 10);
    Values in(PB_F32, {3, 10}, x);
    Shared<uint16_t> halves(30);
    Floats back(30);
    to_bf16(nullptr, halves.data(), in.tensor());
    widen(nullptr, back.data(), halves.data(), 30);
    finish();
    EXPECT_EQ(back, rounded(PB_BF16, x));
}

}  // namespace
}  // namespace patchbay::kernels::cuda::ops_test
