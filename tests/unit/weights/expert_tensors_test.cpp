// Experts that lie in one tensor for all of a layer, and in MXFP4.
#include <gmock/gmock.h>

#include <cmath>

#include "patchbay/sdk/philox.hpp"
#include "unit/weights/safetensors_fixture.hpp"
#include "unit/weights/weight_specs.hpp"
#include "weights/loader.hpp"
#include "weights/stacked_experts.hpp"

namespace patchbay::weights::expert_tensors_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExpertTensors : public ModelFolder {
  protected:
    // (experts, in, out) and (experts, out) f32, each counting from 0.
    void write_stacked(int64_t experts, int64_t in, int64_t out) const {
        const auto counting = [](const char* name, std::vector<int64_t> shape) {
            int64_t n = 1;
            for (const int64_t each : shape) n *= each;
            std::vector<float> data;
            for (int64_t i = 0; i < n; ++i) data.push_back(static_cast<float>(i));
            return WrittenTensor{name, "F32", std::move(shape), f32_bytes(data)};
        };
        write("model.safetensors",
              safetensors({counting("l.experts.up", {experts, in, out}),
                           counting("l.experts.up_bias", {experts, out})}));
    }
    // Blocks and scales of `experts` matrices (rows, cols), of any bytes.
    void write_mxfp4(int64_t experts, int64_t rows, int64_t cols) {
        const auto random = [](size_t i) { return draw(5, i, Stream::kTest, 0); };
        blocks.resize(static_cast<size_t>(experts * rows * cols / 2));
        scales.resize(static_cast<size_t>(experts * rows * cols / 32));
        for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<char>(random(i)[0] & 255);
        for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<char>(random(i)[1] % 255);
        write("config.json", R"({"quantization_config": {"quant_method": "mxfp4"}})");
        write("model.safetensors", safetensors({{"l.experts.up_blocks", "U8", {experts, rows, cols / 32, 16}, blocks},
                                                {"l.experts.up_scales", "U8", {experts, rows, cols / 32}, scales}}));
    }
    // By the format's definition: sign, two bits of exponent (bias 1), one of mantissa; 2^(scale − 127).
    float number(int64_t expert, int64_t row, int64_t col, int64_t rows, int64_t cols) const {
        const int64_t at = (expert * rows + row) * cols + col;
        const int bits = static_cast<unsigned char>(blocks[static_cast<size_t>(at / 2)]) >> (at % 2 * 4) & 15;
        const int exponent = bits >> 1 & 3, mantissa = bits & 1;
        const double size = exponent == 0 ? mantissa * 0.5 : std::ldexp(1 + mantissa * 0.5, exponent - 1);
        const int scale = static_cast<unsigned char>(scales[static_cast<size_t>(at / 32)]);
        return static_cast<float>((bits & 8 ? -size : size) * std::ldexp(1.0, scale - 127));
    }
    WeightSource source() const { return *WeightSource::from_folder(folder); }

    std::string blocks, scales;
};

pb_weight_spec every_second_row(const std::string& name, int64_t rows, int64_t cols) { // first the even, then the odd
    pb_weight_part even = part(name + ".weight", rows / 2, name + ".bias"), odd = even;
    even.stored_rows = odd.stored_rows = rows;
    odd.first_row = 1;
    pb_weight_spec out = spec(cols, {even, odd}, PB_SHARD_ROWS);
    out.orders[0] = out.orders[1] = {1, 2, 0};
    return out;
}

TEST_F(ExpertTensors, of_all_experts_are_found_under_each_ones_name) {
    write_stacked(3, 2, 4);
    const auto weight = source().load(every_second_row("l.experts.1.up", 4, 2), {PB_F32}, 0, 1);
    ASSERT_TRUE(weight) << weight.error();
    // stored (in, out) from 8 on: 8 9 10 11 / 12 13 14 15; rows are outputs
    EXPECT_THAT(values(weight->data, PB_F32), ElementsAre(8, 12, 10, 14, 9, 13, 11, 15));
    EXPECT_THAT(values(weight->bias, PB_F32), ElementsAre(4, 6, 5, 7));
}

TEST_F(ExpertTensors, of_all_experts_are_dealt_to_ranks) {
    write_stacked(3, 2, 4);
    const auto weight = source().load(every_second_row("l.experts.2.up", 4, 2), {PB_F32}, 1, 2);
    ASSERT_TRUE(weight) << weight.error();
    EXPECT_THAT(values(weight->data, PB_F32), ElementsAre(18, 22, 19, 23));
    EXPECT_THAT(values(weight->bias, PB_F32), ElementsAre(10, 11));
}

TEST_F(ExpertTensors, of_all_experts_have_no_more_than_they_say) {
    write_stacked(3, 2, 4);
    EXPECT_THAT(source().load(spec(2, {part("l.experts.3.up.weight", 4)}), {PB_F32}, 0, 1).error(),
                HasSubstr("no tensor 'l.experts.3.up.weight'"));
    EXPECT_THAT(source().load(spec(2, {part("l.experts.0.up.weight", 5)}), {PB_F32}, 0, 1).error(),
                HasSubstr("is (4, 2) but the model needs (5, 2)"));
}

TEST(StackedExpert, IsOnlyWhatHasAnExpertsNumberInItsName) {
    for (const char* name :
         {"l.experts.up.weight", "l.experts.-1.up.weight", "l.experts.1.weight", "l.experts.1", "l.experts.",
          "l.experts.99999999999999999999.up.weight", "l.experts.1.up.scale", "experts.1.up.weight",
          "l.experts.1x.up.weight", ""})
        EXPECT_FALSE(stacked_expert(name)) << name;
    EXPECT_EQ(stacked_expert("l.experts.12.up.weight")->tensor, "l.experts.up");
    EXPECT_EQ(stacked_expert("l.experts.12.up.weight")->expert, 12);
    EXPECT_EQ(stacked_expert("l.experts.0.up.weight_scales")->tensor, "l.experts.up_scales");
}

TEST_F(ExpertTensors, in_mxfp4_are_exact_as_codes_and_as_real_numbers) {
    constexpr int64_t kRows = 6, kCols = 96;
    write_mxfp4(2, kRows, kCols);
    pb_weight_spec wanted = spec(kCols, {part("l.experts.1.up.weight", kRows)});
    for (const WeightForm& form :
         {WeightForm{PB_F32, Quantization::kAsStored}, WeightForm{PB_F32}, WeightForm{PB_BF16}}) {
        const auto weight = source().load(wanted, form, 0, 1);
        ASSERT_TRUE(weight) << weight.error();
        EXPECT_EQ(weight->group, form.quantization == Quantization::kAsStored ? 32u : 0u);
        const std::vector<float> got = weight->group ? meant(*weight) : values(weight->data, form.dtype);
        for (int64_t r = 0; r < kRows; ++r)
            for (int64_t c = 0; c < kCols; ++c)
                ASSERT_EQ(got[static_cast<size_t>(r * kCols + c)], number(1, r, c, kRows, kCols)) << r << ", " << c;
    }
}

TEST_F(ExpertTensors, in_mxfp4_are_cut_by_rows_in_any_order_and_by_half_blocks_of_columns) {
    constexpr int64_t kRows = 8, kCols = 96;
    write_mxfp4(2, kRows, kCols);
    pb_weight_spec by_rows = every_second_row("l.experts.0.up", kRows, kCols);
    by_rows.parts[0].bias[0] = by_rows.parts[1].bias[0] = 0;
    const auto second = source().load(by_rows, {PB_F32}, 1, 2);
    ASSERT_TRUE(second) << second.error();
    const std::vector<float> got = values(second->data, PB_F32);
    for (const auto& [at, stored] : {std::pair{0, 4}, {1, 6}, {2, 5}, {3, 7}})
        for (int64_t c = 0; c < kCols; ++c)
            ASSERT_EQ(got[static_cast<size_t>(at * kCols + c)], number(0, stored, c, kRows, kCols)) << at << ", " << c;

    const pb_weight_spec by_cols = spec(kCols, {part("l.experts.0.up.weight", kRows)}, PB_SHARD_COLS);
    const auto half = source().load(by_cols, {PB_F32, Quantization::kAsStored}, 1, 2);
    ASSERT_TRUE(half) << half.error();
    EXPECT_EQ(half->group, 16u); // 48 columns, one block and a half
    const std::vector<float> codes = meant(*half);
    for (int64_t r = 0; r < kRows; ++r)
        for (int64_t c = 0; c < 48; ++c)
            ASSERT_EQ(codes[static_cast<size_t>(r * 48 + c)], number(0, r, 48 + c, kRows, kCols)) << r << ", " << c;
    EXPECT_THAT(source().load(by_cols, {PB_F32}, 1, 4).error(),
                HasSubstr("columns can be cut at multiples of 16, not into 24 from 24 on"));
}

TEST_F(ExpertTensors, in_mxfp4_are_refused_where_their_tensors_do_not_fit) {
    const auto error = [&](const std::vector<WrittenTensor>& tensors, int64_t cols = 64) {
        write("config.json", R"({"quantization_config": {"quant_method": "mxfp4"}})");
        write("model.safetensors", safetensors(tensors));
        const auto weight = source().load(spec(cols, {part("l.experts.0.up.weight", 2)}),
                                          {PB_F32, Quantization::kAsStored}, 0, 1);
        return weight ? "(was read)" : weight.error();
    };
    const std::string zeros(64, '\0');
    const WrittenTensor good{"l.experts.up_blocks", "U8", {1, 2, 2, 16}, zeros};
    const WrittenTensor good_scales{"l.experts.up_scales", "U8", {1, 2, 2}, std::string(4, '\x7f')};
    EXPECT_EQ(error({good, good_scales}), "(was read)");
    EXPECT_THAT(error({good}), HasSubstr("no tensor 'l.experts.0.up.weight_scales'"));
    EXPECT_THAT(error({good, {"l.experts.up_scales", "U8", {1, 2, 1}, zeros.substr(0, 2)}}),
                HasSubstr("is u8 (2, 1) but the model needs u8 (2, 2)"));
    EXPECT_THAT(error({{"l.experts.up_blocks", "U8", {1, 2, 1, 32}, zeros}, good_scales}),
                HasSubstr("is u8 (2, 1, 32) but the model needs u8 (2, 2, 16)"));
    EXPECT_THAT(error({{"l.experts.up_blocks", "I8", {1, 2, 2, 16}, zeros}, good_scales}),
                HasSubstr("is i8 (2, 2, 16)"));
    EXPECT_THAT(error({good, good_scales}, 63), HasSubstr("its 63 columns are no multiple of 32"));
    EXPECT_THAT(error({good, {"l.experts.up_scales", "U8", {1, 2, 2}, std::string(4, '\xff')}}),
                HasSubstr("holds numbers that are not finite"));
}

}  // namespace
}  // namespace patchbay::weights::expert_tensors_test
