#include "weights/rounded_codes.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "unit/weights/safetensors_fixture.hpp"
#include "unit/weights/weight_specs.hpp"

namespace patchbay::weights::rounded_codes_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WeightForm kInt8{PB_BF16, Quantization::kInt8, 32}, kInt4{PB_BF16, Quantization::kInt4, 32};

std::vector<float> random_numbers(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 0.02f);
    std::vector<float> out(count);
    for (float& x : out) x = normal(random);
    return out;
}

// Root of the mean squared error over that of the numbers.
double error_of(const std::vector<float>& got, const std::vector<float>& expected) {
    double error = 0, all = 0;
    for (size_t i = 0; i < got.size(); ++i) {
        error += std::pow(double{got[i]} - expected[i], 2);
        all += std::pow(double{expected[i]}, 2);
    }
    return std::sqrt(error / all);
}

class RoundedWeights : public ModelFolder {
  protected:
    WeightSource source(const std::vector<WrittenTensor>& tensors) const {
        write("model.safetensors", safetensors(tensors));
        return *WeightSource::from_folder(folder);
    }
    static WrittenTensor matrix(const std::string& name, int64_t rows, int64_t cols, uint32_t seed) {
        return {name, "F32", {rows, cols}, f32_bytes(random_numbers(static_cast<size_t>(rows * cols), seed))};
    }
};

TEST(RoundingToInt8, gives_the_largest_127_steps_and_errs_by_half_a_step) {
    std::vector<float> numbers = random_numbers(128, 1);
    numbers[77] = -0.5f;
    std::vector<int8_t> codes(128);
    const float scale = round_to_int8(numbers.data(), 128, codes.data());
    EXPECT_FLOAT_EQ(scale, 0.5f / 127);
    EXPECT_EQ(codes[77], -127);
    for (size_t i = 0; i < 128; ++i) EXPECT_LE(std::abs(numbers[i] - codes[i] * scale), scale * 0.5001f) << i;
}

TEST(RoundingToInt4, keeps_numbers_that_lie_on_a_grid_of_sixteen) {
    std::vector<float> numbers(32);
    std::vector<int8_t> codes(32);
    for (const float step : {0.25f, -0.25f, 1e30f, 1e-20f}) {
        for (size_t i = 0; i < 32; ++i) numbers[i] = (static_cast<float>(i % 16) - 8) * step;
        const float scale = round_to_int4(numbers.data(), 32, codes.data());
        for (size_t i = 0; i < 32; ++i) {
            EXPECT_EQ(codes[i], static_cast<int>(i % 16) - 8) << step;
            EXPECT_FLOAT_EQ(codes[i] * scale, numbers[i]) << step;
        }
    }
}

TEST(RoundingToInt4, errs_less_than_with_the_scale_that_fits_the_largest_number) {
    const auto numbers = random_numbers(32 * 200, 2);
    std::vector<float> chosen(numbers.size()), simple(numbers.size());
    for (size_t first = 0; first < numbers.size(); first += 32) {
        int8_t codes[32];
        const float scale = round_to_int4(&numbers[first], 32, codes);
        float max_size = 0;
        for (size_t i = 0; i < 32; ++i) max_size = std::max(max_size, std::abs(numbers[first + i]));
        double error = 0, simple_error = 0;
        for (size_t i = 0; i < 32; ++i) {
            chosen[first + i] = static_cast<float>(codes[i]) * scale;
            simple[first + i] = std::rint(numbers[first + i] * 7 / max_size) * max_size / 7;
            error += std::pow(chosen[first + i] - numbers[first + i], 2);
            simple_error += std::pow(simple[first + i] - numbers[first + i], 2);
        }
        EXPECT_LE(error, simple_error * 1.0001) << first;
    }
    EXPECT_LT(error_of(chosen, numbers), 0.9 * error_of(simple, numbers));
    EXPECT_LT(error_of(chosen, numbers), 0.085);
}

TEST(Rounding, makes_zeros_of_zeros_and_of_what_is_next_to_them) {
    for (const float x : {0.0f, -0.0f, 1e-40f, std::numeric_limits<float>::denorm_min()}) {
        const std::vector<float> numbers(32, x);
        std::vector<int8_t> codes(32, 5);
        EXPECT_EQ(round_to_int8(numbers.data(), 32, codes.data()), 0);
        EXPECT_THAT(codes, Each(0));
        EXPECT_EQ(round_to_int4(numbers.data(), 32, codes.data()), 0);
        EXPECT_THAT(codes, Each(0));
    }
}

TEST_F(RoundedWeights, mean_nearly_what_they_were_in_short_and_odd_last_groups_too) {
    for (const int64_t cols : {32, 128, 129, 7, 31, 33, 200}) {
        const auto from = source({matrix("w", 40, cols, 3)});
        const auto real = values(from.load(spec(cols, {part("w", 40)}), {PB_F32}, 0, 1)->data, PB_F32);
        for (const uint32_t group : {32u, 128u})
            for (const auto quantization : {Quantization::kInt8, Quantization::kInt4}) {
                const auto weight = from.load(spec(cols, {part("w", 40)}), {PB_F32, quantization, group}, 0, 1);
                ASSERT_TRUE(weight) << weight.error();
                EXPECT_EQ(weight->dtype, quantization == Quantization::kInt4 ? PB_I4 : PB_I8);
                EXPECT_EQ(weight->group, group);
                EXPECT_EQ(weight->scales.size(), static_cast<size_t>(40 * ((cols + group - 1) / group)));
                EXPECT_THAT(weight->offsets, IsEmpty());
                EXPECT_THAT(weight->order, IsEmpty());
                EXPECT_LT(error_of(meant(*weight), real), quantization == Quantization::kInt4 ? 0.105 : 0.007) << cols;
            }
    }
}

TEST_F(RoundedWeights, have_two_codes_a_byte_as_int4_the_even_column_in_the_low_half) {
    const auto from = source({{"w", "F32", {1, 5}, f32_bytes({-8, 7, 1, -1, 3})}});
    const auto weight = *from.load(spec(5, {part("w", 1)}), kInt4, 0, 1);
    EXPECT_FLOAT_EQ(weight.scales[0], 1);
    EXPECT_THAT(weight.data, ElementsAre(std::byte{0x78}, std::byte{0xF1}, std::byte{0x03}));
}

TEST_F(RoundedWeights, fuse_their_parts_and_keep_the_bias_as_f32) {
    const auto from =
        source({matrix("q", 6, 64, 4), matrix("k", 3, 64, 5), {"k.bias", "F32", {3}, f32_bytes({1, 2, 3})}});
    const auto fused = spec(64, {part("q", 6), part("k", 3, "k.bias")});
    const auto real = values(from.load(fused, {PB_F32}, 0, 1)->data, PB_F32);
    for (const WeightForm& form : {kInt8, kInt4}) {
        const auto weight = *from.load(fused, form, 0, 1);
        EXPECT_EQ(weight.rows, 9);
        EXPECT_LT(error_of(meant(weight), real), 0.1);
        EXPECT_THAT(values(weight.bias, PB_F32), ElementsAre(0, 0, 0, 0, 0, 0, 1, 2, 3));
    }
}

TEST_F(RoundedWeights, are_those_that_are_multiplied_with_alone) {
    const auto from = source({matrix("w", 8, 32, 6), {"norm", "F32", {32}, f32_bytes(random_numbers(32, 7))}});
    auto embedding = spec(32, {part("w", 8)}, PB_SHARD_NONE, PB_WEIGHT_EMBEDDING);
    embedding.uses = 1u << PB_WEIGHT_EMBEDDING;
    EXPECT_EQ(from.load(embedding, kInt8, 0, 1)->dtype, PB_BF16);
    embedding.uses |= 1u << PB_WEIGHT_LINEAR; // a head that is tied to it
    EXPECT_EQ(from.load(embedding, kInt8, 0, 1)->dtype, PB_I8);
    const auto norm = *from.load(spec(32, {part("norm", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR), kInt8, 0, 1);
    EXPECT_EQ(norm.dtype, PB_BF16);
    EXPECT_EQ(norm.group, 0u);
}

TEST_F(RoundedWeights, are_the_same_with_many_threads_as_with_one_and_of_made_up_weights_too) {
    ThreadPool pool(3);
    for (auto from : {source({matrix("w", 900, 700, 8)}), WeightSource::dummy(4)})
        for (const WeightForm& form : {kInt8, kInt4}) {
            auto threaded = from;
            threaded.read_with(pool);
            const auto wanted = spec(700, {part("w", 900)}, PB_SHARD_ROWS);
            const auto real = values(from.load(wanted, {PB_F32}, 1, 2)->data, PB_F32);
            const auto alone = from.load(wanted, form, 1, 2), together = threaded.load(wanted, form, 1, 2);
            EXPECT_TRUE(std::ranges::equal(alone->data, together->data));
            EXPECT_TRUE(std::ranges::equal(alone->scales, together->scales));
            EXPECT_LT(error_of(meant(*alone), real), 0.09);
        }
}

TEST_F(RoundedWeights, have_one_scale_for_all_of_a_row_which_its_largest_number_gives) {
    constexpr WeightForm kRows{PB_BF16, Quantization::kInt8, WeightForm::kWholeRows};
    for (const int64_t cols : {301, 512}) { // also such as are no whole number of vectors
        const auto from = source({matrix("w", 7, cols, 10)});
        const auto real = values(from.load(spec(cols, {part("w", 7)}), {PB_F32}, 0, 1)->data, PB_F32);
        const auto weight = *from.load(spec(cols, {part("w", 7)}), kRows, 0, 1);
        EXPECT_EQ(weight.group, 128u);
        EXPECT_TRUE(weight.whole_rows);
        const int64_t groups = (cols + 127) / 128;
        for (int64_t r = 0; r < 7; ++r) {
            float max_size = 0;
            for (int64_t c = 0; c < cols; ++c)
                max_size = std::max(max_size, std::abs(real[static_cast<size_t>(r * cols + c)]));
            for (int64_t g = 0; g < groups; ++g)
                EXPECT_FLOAT_EQ(weight.scales[static_cast<size_t>(r * groups + g)], max_size / 127) << r << " " << g;
        }
        EXPECT_LT(error_of(meant(weight), real), 0.01);
    }
}

TEST_F(RoundedWeights, turn_a_transposed_tensor_and_take_its_rows_and_columns) {
    const auto from = source({matrix("w", 96, 40, 9)}); // (cols, rows)
    pb_weight_part turned = part("w", 40);
    turned.transposed = 1;
    for (const pb_shard shard : {PB_SHARD_NONE, PB_SHARD_ROWS, PB_SHARD_COLS}) {
        const uint32_t ranks = shard == PB_SHARD_NONE ? 1 : 2;
        const auto wanted = spec(96, {turned}, shard);
        const auto real = values(from.load(wanted, {PB_F32}, ranks - 1, ranks)->data, PB_F32);
        EXPECT_LT(error_of(meant(*from.load(wanted, kInt8, ranks - 1, ranks)), real), 0.007);
    }
}

TEST_F(RoundedWeights, are_refused_where_a_number_is_not_finite) {
    for (const float x : {INFINITY, -INFINITY, NAN, -NAN}) {
        std::vector<float> numbers = random_numbers(64, 10);
        numbers[40] = x;
        const auto from = source({{"w", "F32", {1, 64}, f32_bytes(numbers)}});
        for (const WeightForm& form : {kInt8, kInt4})
            EXPECT_EQ(from.load(spec(64, {part("w", 1)}), form, 0, 1).error(),
                      "tensor 'w' holds numbers that are not finite (is the file damaged?)");
    }
}

TEST_F(RoundedWeights, have_groups_of_32_or_128) {
    const auto from = source({matrix("w", 1, 64, 11)});
    EXPECT_THAT(from.load(spec(64, {part("w", 1)}), {PB_F32, Quantization::kInt8, 48}, 0, 1).error(),
                HasSubstr("groups of 32 or 128 columns, not of 48"));
}

}  // namespace
}  // namespace patchbay::weights::rounded_codes_test
