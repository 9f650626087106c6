// Weights of fp8: a number times its scale is one f32, or in tiles one bf16, so that products have the bits of a matrix
// of those.
#include <cstring>
#include <vector>

#include "guarded.hpp"

namespace patchbay::kernels::fp8_test {
namespace {

uint8_t any_code(Random& random) { // no NaN
    const auto code = static_cast<uint8_t>(random.between(0, 255));
    return (code & 0x7f) == 0x7f ? static_cast<uint8_t>(code - 1) : code;
}

struct Fp8Weight {
    Fp8Weight(Random& random, int64_t row_count, int64_t col_count, int64_t columns_of_a_scale, bool with_bias)
        : rows(row_count), cols(col_count), group(columns_of_a_scale) {
        const int64_t groups = (cols + group - 1) / group;
        for (const float value : random.values(rows * groups)) scales.push_back(value / 100);
        for (int64_t i = 0; i < rows * cols; ++i) {
            codes.push_back(any_code(random));
            numbers.push_back(fp8_to_f32(codes.back()) *
                              scales[static_cast<size_t>(i / cols * groups + i % cols / group)]);
        }
        if (with_bias) bias = random.values(rows);
    }

    PackedMatrix packed(const Machine& machine) const {
        return PackedMatrix::pack(machine, {.dtype = PB_FP8,
                                            .rows = rows,
                                            .cols = cols,
                                            .codes = codes.data(),
                                            .group = group,
                                            .scales = scales.data(),
                                            .bias = bias.empty() ? nullptr : bias.data()});
    }
    // The numbers as the level computes with them.
    PackedMatrix widened(const Machine& machine) const {
        const void* const b = bias.empty() ? nullptr : bias.data();
        if (machine.isa != Isa::Amx) return PackedMatrix::pack(machine, PB_F32, rows, cols, numbers.data(), b);
        const std::vector<uint16_t> rounded = to_bf16(numbers), rounded_bias = to_bf16(bias);
        return PackedMatrix::pack(machine, PB_BF16, rows, cols, rounded.data(), b ? rounded_bias.data() : nullptr);
    }

    int64_t rows, cols, group;
    std::vector<uint8_t> codes;
    std::vector<float> scales, numbers, bias;
};

std::vector<float> product(const Machine& machine, const PackedMatrix& w, const std::vector<float>& x, int64_t tokens) {
    Poisoned out(tokens, w.rows()), in(tokens, w.cols(), 5);
    in.fill(x);
    linear(machine, out.view(), in.view(), w);
    EXPECT_TRUE(out.intact());
    return out.values();
}

class Fp8 : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, Fp8, each_isa(), isa_test_name);

TEST_P(Fp8, HasTheBitsOfTheNumbersThatItStandsFor) {
    Random random(1);
    const Machine machine{GetParam(), {}};
    for (int i = 0; i < 60; ++i) {
        const int64_t rows = random.between(1, 200);
        const int64_t cols = i % 10 ? random.between(1, 400) : random.between(2000, 4300);
        const int64_t tokens = i % 4 ? random.between(1, 20) : random.between(21, 150), group = 16 << i % 4;
        SCOPED_TRACE(testing::Message() << tokens << " × " << rows << " × " << cols << " in groups of " << group);
        // Of a bias the tiles' level keeps f32, and a matrix of bf16 has none.
        const Fp8Weight w(random, rows, cols, group, i % 3 == 0 && GetParam() != Isa::Amx);
        const std::vector<float> x = random.values(tokens * cols);
        const std::vector<float> got = product(machine, w.packed(machine), x, tokens);
        ASSERT_TRUE(same_bits(got.data(), product(machine, w.widened(machine), x, tokens).data(), tokens * rows));
    }
}

// More of K than rows of a pair stay near with in tiles, where fewer rows do.
TEST_P(Fp8, HasThoseBitsOfLongSumsToo) {
    Random random(6);
    const Machine alone{GetParam(), {}}, eight{GetParam(), backwards_crew(8)};
    constexpr int64_t kCols = 18432;
    for (const int64_t rows : {32, 256}) {
        const Fp8Weight weight(random, rows, kCols, 128, false);
        const PackedMatrix w = weight.packed(alone), numbers = weight.widened(alone);
        for (const int64_t tokens : {1, 17, 28, 29, 33, 70}) {
            const std::vector<float> x = random.values(tokens * kCols), want = product(alone, numbers, x, tokens);
            EXPECT_TRUE(product(alone, w, x, tokens) == want) << rows << " rows, " << tokens << " tokens";
            EXPECT_TRUE(product(eight, w, x, tokens) == want) << rows << " rows, " << tokens << " tokens on eight";
        }
    }
}

TEST_P(Fp8, AddsABiasOfF32) {
    Random random(2);
    const Machine machine{GetParam(), {}};
    Fp8Weight w(random, 45, 70, 32, true);
    const std::vector<float> x = random.values(40 * w.cols), got = product(machine, w.packed(machine), x, 40);
    const std::vector<float> bias = std::exchange(w.bias, {});
    std::vector<float> want = product(machine, w.packed(machine), x, 40);
    for (size_t i = 0; i < want.size(); ++i) want[i] += bias[i % bias.size()];
    EXPECT_TRUE(same_bits(got.data(), want.data(), 40 * w.rows));
}

// More than one pair of rows, and so much of K that tiles take it in parts.
TEST_P(Fp8, GivesARowTheSameBitsAloneInAnyBatchAndForAnyNumberOfThreads) {
    Random random(3);
    const Machine alone{GetParam(), {}};
    const Fp8Weight weight(random, 70, 4201, 128, true);
    const PackedMatrix w = weight.packed(alone);
    constexpr int64_t kTokens = 290;
    const std::vector<float> x = random.values(kTokens * w.cols()), all = product(alone, w, x, kTokens);
    for (const int64_t count : {1, 5, 17, 32, 33, 129})
        for (int64_t from = 0; from + count <= kTokens; from += 2 * count) {
            const std::vector<float> some(x.begin() + from * w.cols(), x.begin() + (from + count) * w.cols());
            const std::vector<float> part = product(alone, w, some, count);
            ASSERT_TRUE(same_bits(part.data(), all.data() + from * w.rows(), count * w.rows()))
                << count << " rows from " << from;
        }
    for (const uint32_t threads : {2u, 3u, 16u})
        EXPECT_TRUE(product({GetParam(), backwards_crew(threads)}, w, x, kTokens) == all) << threads;
}

TEST_P(Fp8, ReadsRowsExactlyAndTakesAByteANumber) {
    Random random(4);
    const Machine machine{GetParam(), {}};
    const Fp8Weight weight(random, 64, 256, 128, false);
    const PackedMatrix w = weight.packed(machine);
    const std::vector<int32_t> ids = {0, 63, 3, 3};
    Poisoned out(4, w.cols());
    embedding(machine, out.view(), w, ids.data());
    EXPECT_TRUE(out.intact());
    const std::vector<float> got = out.values();
    for (size_t i = 0; i < ids.size(); ++i)
        EXPECT_TRUE(same_bits(got.data() + i * 256, weight.numbers.data() + ids[i] * 256, 256)) << i;
    EXPECT_EQ(w.bytes(), 64u * (256 + 2 * sizeof(float)));
}

TEST_P(Fp8, HasTheBitsOfItsPartsInAGatedMlp) {
    Random random(5);
    const Machine machine{GetParam(), {}};
    for (const int64_t tokens : {1, 31, 100}) {
        constexpr int64_t kHidden = 2100, kInner = 160;
        const PackedMatrix gate_up = Fp8Weight(random, 2 * kInner, kHidden, 128, false).packed(machine);
        const PackedMatrix down = Fp8Weight(random, kHidden, kInner, 32, false).packed(machine);
        const std::vector<float> x = random.values(tokens * kHidden);
        Poisoned in(tokens, kHidden), halves(tokens, 2 * kInner), gated(tokens, kInner), want(tokens, kHidden),
            got(tokens, kHidden);
        in.fill(x);
        linear(machine, halves.view(), in.view(), gate_up);
        silu_mul(machine, gated.view(), halves.view());
        linear(machine, want.view(), gated.view(), down);
        Scratch rows;
        gated_mlp(machine, rows, got.view(), in.view(), gate_up, down, Gate::kSilu);
        EXPECT_TRUE(got.values() == want.values()) << tokens;
    }
}

}  // namespace
}  // namespace patchbay::kernels::fp8_test
