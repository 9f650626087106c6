#include "weights/loader.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "unit/weights/safetensors_fixture.hpp"
#include "unit/weights/weight_specs.hpp"
#include "weights/convert.hpp"
#include "weights/dummy.hpp"

namespace patchbay::weights::loader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Loader : public ModelFolder {
  protected:
    WeightSource source(const std::vector<WrittenTensor>& tensors) const {
        write("model.safetensors", safetensors(tensors));
        return *WeightSource::from_folder(folder);
    }
    // (rows, cols) f32 counting from `first`.
    static WrittenTensor counting(const std::string& name, std::vector<int64_t> shape, float first) {
        int64_t n = 1;
        for (const int64_t each : shape) n *= each;
        std::vector<float> data;
        for (int64_t i = 0; i < n; ++i) data.push_back(first + static_cast<float>(i));
        return {name, "F32", std::move(shape), f32_bytes(data)};
    }
};

TEST_F(Loader, calls_a_file_that_is_no_checkpoint_invalid) {
    write("model.safetensors", "this is a text file, named as if it were not");
    EXPECT_EQ(WeightSource::from_folder(folder).code(), StatusCode::kInvalid);
}

TEST_F(Loader, fuses_parts_along_rows_and_fills_the_bias_of_a_part_without_one_with_zeros) {
    const auto from = source({counting("q", {2, 2}, 0), counting("k", {1, 2}, 10), counting("k.bias", {1}, 7)});
    const auto weight = from.load(spec(2, {part("q", 2), part("k", 1, "k.bias")}), {PB_F32}, 0, 1);
    ASSERT_TRUE(weight) << weight.error();
    EXPECT_EQ(weight->rows, 3);
    EXPECT_EQ(weight->cols, 2);
    EXPECT_THAT(values(weight->data, PB_F32), ElementsAre(0, 1, 2, 3, 10, 11));
    EXPECT_THAT(values(weight->bias, PB_F32), ElementsAre(0, 0, 7));
}

TEST_F(Loader, cuts_rows_of_every_part_in_whole_units) {
    const auto from = source({counting("q", {4, 1}, 0), counting("k", {2, 1}, 10), counting("q.bias", {4}, 20),
                              counting("k.bias", {2}, 30)});
    const auto fused = spec(1, {part("q", 4, "q.bias", 2), part("k", 2, "k.bias", 1)}, PB_SHARD_ROWS);
    const auto second = from.load(fused, {PB_F32}, 1, 2);
    ASSERT_TRUE(second) << second.error();
    EXPECT_THAT(values(second->data, PB_F32), ElementsAre(2, 3, 11));
    EXPECT_THAT(values(second->bias, PB_F32), ElementsAre(22, 23, 31));
    EXPECT_THAT(from.load(fused, {PB_F32}, 0, 4).error(),
                HasSubstr("cannot deal the 4 rows of 'q' to 4 ranks in units of 2"));
}

TEST_F(Loader, cuts_columns_and_gives_the_bias_to_the_first_rank_alone) {
    const auto from = source({counting("o", {2, 4}, 0), counting("o.bias", {2}, 50)});
    const auto down = spec(4, {part("o", 2, "o.bias")}, PB_SHARD_COLS);
    const auto first = from.load(down, {PB_F32}, 0, 2), second = from.load(down, {PB_F32}, 1, 2);
    ASSERT_TRUE(first && second);
    EXPECT_THAT(values(first->data, PB_F32), ElementsAre(0, 1, 4, 5));
    EXPECT_THAT(values(second->data, PB_F32), ElementsAre(2, 3, 6, 7));
    EXPECT_THAT(values(first->bias, PB_F32), ElementsAre(50, 51));
    EXPECT_THAT(second->bias, IsEmpty());
}

TEST_F(Loader, takes_some_rows_of_a_stored_tensor_and_of_its_bias) {
    const auto from = source({counting("qkv", {5, 2}, 0), counting("qkv.bias", {5}, 20)});
    pb_weight_part k = part("qkv", 2, "qkv.bias", 1);
    k.first_row = 2;
    k.stored_rows = 5;
    const auto all = from.load(spec(2, {k}, PB_SHARD_ROWS), {PB_F32}, 0, 1),
               second = from.load(spec(2, {k}, PB_SHARD_ROWS), {PB_F32}, 1, 2);
    ASSERT_TRUE(all && second);
    EXPECT_THAT(values(all->data, PB_F32), ElementsAre(4, 5, 6, 7));
    EXPECT_THAT(values(all->bias, PB_F32), ElementsAre(22, 23));
    EXPECT_THAT(values(second->data, PB_F32), ElementsAre(6, 7));
    EXPECT_THAT(values(second->bias, PB_F32), ElementsAre(23));
    k.first_row = 4;
    EXPECT_EQ(from.load(spec(2, {k}), {PB_F32}, 0, 1).error(),
              "the model declares 2 rows from 4 on of 'qkv', which has 5");
}

TEST_F(Loader, takes_rows_that_do_not_follow_one_another) {
    const auto from = source({counting("qkv", {8, 1}, 0), counting("qkv.bias", {8}, 20)});
    pb_weight_part k = part("qkv", 4, "qkv.bias", 2);
    k.first_row = 1;
    k.stored_rows = 8;
    pb_weight_spec wanted = spec(1, {k}, PB_SHARD_ROWS);
    wanted.orders[0] = {2, 4, 0}; // rows 1, 2, 5, 6
    const auto all = from.load(wanted, {PB_F32}, 0, 1), second = from.load(wanted, {PB_BF16}, 1, 2);
    ASSERT_TRUE(all && second);
    EXPECT_THAT(values(all->data, PB_F32), ElementsAre(1, 2, 5, 6));
    EXPECT_THAT(values(all->bias, PB_F32), ElementsAre(21, 22, 25, 26));
    EXPECT_THAT(values(second->data, PB_BF16), ElementsAre(5, 6));
    const auto codes = from.load(wanted, {PB_F32, Quantization::kInt8, 32}, 1, 2);
    ASSERT_TRUE(codes) << codes.error();
    EXPECT_THAT(codes->scales, ElementsAre(testing::FloatEq(5.0f / 127), testing::FloatEq(6.0f / 127)));
    wanted.orders[0] = {2, 6, 0};
    EXPECT_EQ(from.load(wanted, {PB_F32}, 0, 1).error(),
              "the model takes the rows of 'qkv' in an order of their own, which reach past its 8");
    wanted.orders[0] = {3, 2, 0};
    EXPECT_EQ(from.load(wanted, {PB_F32}, 0, 1).error(),
              "the model takes the rows of 'qkv' in an order of their own, 3 of every 2");
}

TEST_F(Loader, takes_pairs_of_rows_apart) {
    const auto from = source({counting("q", {8, 1}, 0), counting("q.bias", {8}, 20)});
    pb_weight_spec wanted = spec(1, {part("q", 8, "q.bias", 4)}, PB_SHARD_ROWS);
    wanted.orders[0] = {0, 0, 4};
    const auto all = from.load(wanted, {PB_F32}, 0, 1), second = from.load(wanted, {PB_F32}, 1, 2);
    ASSERT_TRUE(all && second);
    EXPECT_THAT(values(all->data, PB_F32), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
    EXPECT_THAT(values(second->bias, PB_F32), ElementsAre(24, 26, 25, 27));
    wanted.orders[0].pairs = 3;
    EXPECT_EQ(from.load(wanted, {PB_F32}, 0, 1).error(),
              "the model takes the rows of 'q' in an order of their own, in pairs of 3 rows, of 8");
}

TEST_F(Loader, multiplies_numbers_of_fp8_by_the_scales_of_their_blocks) {
    const std::string codes = {0x38, 0x40, 0x7e, 0x01, char(0xb8), 0x08}; // 1, 2, 448, 2^-9, -1, 2^-6
    const WrittenTensor w{"a.weight", "F8_E4M3", {2, 3}, codes};
    write("model.safetensors", safetensors({w, {"a.weight_scale_inv", "F32", {2, 2}, f32_bytes({2, 3, 4, 5})}}));
    write("config.json", R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 2]}})");
    const auto blocks = WeightSource::from_folder(folder)->load(spec(3, {part("a.weight", 2)}), {PB_F32}, 0, 1);
    ASSERT_TRUE(blocks) << blocks.error();
    EXPECT_THAT(values(blocks->data, PB_F32), ElementsAre(2, 4, 448 * 3, 4 * 0x1p-9f, -4, 5 * 0x1p-6f));
    const auto second =
        WeightSource::from_folder(folder)->load(spec(3, {part("a.weight", 2)}, PB_SHARD_ROWS), {PB_F32}, 1, 2);
    ASSERT_TRUE(second) << second.error();
    EXPECT_THAT(values(second->data, PB_F32), ElementsAre(4 * 0x1p-9f, -4, 5 * 0x1p-6f));

    write("config.json", R"({"quantization_config": {"quant_method": "fp8"}})");
    const auto error = [&] {
        const auto loaded = WeightSource::from_folder(folder)->load(spec(3, {part("a.weight", 2)}), {PB_F32}, 0, 1);
        return loaded ? "(was loaded)" : loaded.error();
    };
    EXPECT_EQ(error(), "tensor 'a.weight_scale_inv' is f32 (2, 2), expected real numbers (1, 1) for 'a.weight' (2, 3) "
                       "(is quantization_config of another model?)");
    write("model.safetensors", safetensors({w, {"a.weight_scale", "F32", {}, f32_bytes({2})}}));
    EXPECT_EQ(error(), "(was loaded)");
    write("model.safetensors", safetensors({w, {"a.weight_scale", "F32", {1}, f32_bytes({INFINITY})}}));
    EXPECT_EQ(error(), "tensor 'a.weight_scale' holds numbers that are not finite (is the file damaged?)");
    write("model.safetensors", safetensors({w}));
    EXPECT_EQ(error(), "tensor 'a.weight' is F8_E4M3, and the checkpoint has neither 'a.weight_scale_inv' nor "
                       "'a.weight_scale'");
}

TEST_F(Loader, keeps_numbers_of_fp8_exactly_as_bf16_where_their_scales_are_powers_of_two) {
    std::string codes(254, '\0'); // all but the two that are no numbers
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<char>(i < 127 ? i : i + 1);
    write("model.safetensors", safetensors({{"a.weight", "F8_E4M3", {2, 127}, codes},
                                            {"a.weight_scale_inv", "F32", {2, 1}, f32_bytes({0x1p-7f, 0x1p3f})}}));
    write("config.json", R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 128]}})");
    const auto from = WeightSource::from_folder(folder);
    ASSERT_TRUE(from) << from.error();
    const auto wanted = spec(127, {part("a.weight", 2)});
    const auto exact = values(from->load(wanted, {PB_F32}, 0, 1)->data, PB_F32);
    EXPECT_EQ(values(from->load(wanted, {PB_BF16}, 0, 1)->data, PB_BF16), exact);
    EXPECT_EQ(exact[1], 0x1p-16f);
    EXPECT_EQ(exact[126], 3.5f);
    EXPECT_EQ(exact[253], -448 * 8);
}

// (2, 48) in blocks of one row and 32 columns; the codes are 1 … 96, the scales 2, 3, 4, 5.
struct Fp8File {
    std::string codes;
    std::vector<WrittenTensor> tensors;
    Fp8File() {
        for (int i = 1; i <= 96; ++i) codes += static_cast<char>(i);
        tensors = {{"a.weight", "F8_E4M3", {2, 48}, codes},
                   {"a.weight_scale_inv", "F32", {2, 2}, f32_bytes({2, 3, 4, 5})}};
    }
};
constexpr const char* kBlocksOf32 = R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 32]}})";
constexpr WeightForm kAsStored{PB_BF16, Quantization::kAsStored};

TEST_F(Loader, keeps_fp8_as_it_is_stored_beside_the_scales_of_its_blocks) {
    const Fp8File file;
    write("model.safetensors", safetensors(file.tensors));
    write("config.json", kBlocksOf32);
    const auto from = WeightSource::from_folder(folder);
    const auto whole = from->load(spec(48, {part("a.weight", 2)}), kAsStored, 0, 1);
    ASSERT_TRUE(whole) << whole.error();
    EXPECT_EQ(std::tuple(whole->dtype, whole->group, whole->offsets.size()), std::tuple(PB_FP8, 32u, 0u));
    EXPECT_EQ(std::memcmp(whole->data.data(), file.codes.data(), 96), 0);
    EXPECT_THAT(whole->scales, ElementsAre(2, 3, 4, 5));
    const auto row = from->load(spec(48, {part("a.weight", 2)}, PB_SHARD_ROWS), kAsStored, 1, 2);
    EXPECT_THAT(row->scales, ElementsAre(4, 5));
    EXPECT_EQ(std::memcmp(row->data.data(), file.codes.data() + 48, 48), 0);
    // Rank 1 of 3 begins within a block, rank 1 of 6 within any group of one.
    const auto third = from->load(spec(48, {part("a.weight", 2)}, PB_SHARD_COLS), kAsStored, 1, 3);
    EXPECT_EQ(std::tuple(third->dtype, third->group), std::tuple(PB_FP8, 16u));
    EXPECT_EQ(std::memcmp(third->data.data(), file.codes.data() + 16, 16), 0);
    EXPECT_THAT(third->scales, ElementsAre(2, 4));
    const auto sixth = from->load(spec(48, {part("a.weight", 2)}, PB_SHARD_COLS), kAsStored, 1, 6);
    EXPECT_EQ(std::tuple(sixth->dtype, sixth->group), std::tuple(PB_BF16, 0u));
    EXPECT_EQ(values(sixth->data, PB_BF16)[8], fp8_to_f32(57) * 4);
}

TEST_F(Loader, decodes_fp8_beside_real_numbers_and_in_blocks_of_columns_that_are_no_groups) {
    Fp8File file;
    file.tensors.push_back(counting("b.weight", {1, 48}, 0));
    write("model.safetensors", safetensors(file.tensors));
    write("config.json", kBlocksOf32);
    const auto fused =
        WeightSource::from_folder(folder)->load(spec(48, {part("a.weight", 2), part("b.weight", 1)}), kAsStored, 0, 1);
    ASSERT_TRUE(fused) << fused.error();
    EXPECT_EQ(std::tuple(fused->dtype, fused->group), std::tuple(PB_BF16, 0u));
    EXPECT_EQ(values(fused->data, PB_BF16)[48 + 16], 2.25f * 4);
    EXPECT_EQ(values(fused->data, PB_BF16)[96 + 5], 5);
    file.tensors[1].shape = {2, 2}; // of 24 columns
    write("model.safetensors", safetensors(file.tensors));
    write("config.json", R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 24]}})");
    const auto odd = WeightSource::from_folder(folder)->load(spec(48, {part("a.weight", 2)}), kAsStored, 0, 1);
    ASSERT_TRUE(odd) << odd.error();
    EXPECT_EQ(std::tuple(odd->dtype, odd->group), std::tuple(PB_BF16, 0u));
}

TEST_F(Loader, takes_blocks_of_fp8_that_are_greater_than_a_tensor_for_all_of_it) {
    Fp8File file;
    write("config.json", R"({"quantization_config": {"quant_method": "fp8",
                             "weight_block_size": [9223372036854775807, 9223372036854775807]}})");
    const auto load = [&](const WrittenTensor& scales) {
        write("model.safetensors", safetensors({file.tensors[0], scales}));
        return WeightSource::from_folder(folder)->load(spec(48, {part("a.weight", 2)}), kAsStored, 0, 1);
    };
    const auto one = load({"a.weight_scale_inv", "F32", {1, 1}, f32_bytes({2})});
    ASSERT_TRUE(one) << one.error();
    EXPECT_THAT(one->scales, ElementsAre(2, 2));
    EXPECT_FALSE(load({"a.weight_scale_inv", "F32", {0, 1}, ""}));
    const auto great = load({"a.weight_scale_inv", "F32", {1, 1}, f32_bytes({0x1p120f})});
    ASSERT_TRUE(great) << great.error();
    EXPECT_EQ(great->group, 0u) << "decoded";
}

TEST_F(Loader, refuses_fp8_that_is_no_number) {
    Fp8File file;
    file.tensors[0].bytes[7] = char(0xff);
    write("model.safetensors", safetensors(file.tensors));
    write("config.json", kBlocksOf32);
    const auto loaded = WeightSource::from_folder(folder)->load(spec(48, {part("a.weight", 2)}), kAsStored, 0, 1);
    EXPECT_EQ(loaded ? "(was loaded)" : loaded.error(),
              "tensor 'a.weight' holds numbers that are not finite (is the file damaged?)");
}

TEST_F(Loader, turns_a_transposed_tensor_and_takes_its_rows_and_columns) {
    const auto from = source({counting("c_attn", {2, 4}, 0)}); // (cols, rows): row r is r, r + 4
    pb_weight_part whole = part("c_attn", 4, "", 1);
    whole.transposed = 1;
    EXPECT_THAT(values(from.load(spec(2, {whole}), {PB_F32}, 0, 1)->data, PB_F32), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
    EXPECT_THAT(values(from.load(spec(2, {whole}), {PB_BF16}, 0, 1)->data, PB_BF16),
                ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
    EXPECT_THAT(values(from.load(spec(2, {whole}, PB_SHARD_COLS), {PB_F32}, 1, 2)->data, PB_F32),
                ElementsAre(4, 5, 6, 7));
    pb_weight_part some = whole;
    some.rows = 2;
    some.first_row = 1;
    some.stored_rows = 4;
    EXPECT_THAT(values(from.load(spec(2, {some}), {PB_F32}, 0, 1)->data, PB_F32), ElementsAre(1, 5, 2, 6));
    EXPECT_EQ(from.load(spec(4, {whole}), {PB_F32}, 0, 1).error(),
              "tensor 'c_attn' is (2, 4) but the model needs (4, 4) (is config.json of another model?)");
}

TEST_F(Loader, hands_out_the_bytes_of_the_file_where_they_are_as_they_must_be) {
    write("model.safetensors", safetensors({counting("a", {4, 2}, 0), counting("b", {4}, 0)}));
    const std::shared_ptr<const Checkpoint> checkpoint = *Checkpoint::open(folder);
    const auto from = WeightSource::from_checkpoint(checkpoint);
    const std::byte* const file = checkpoint->tensor("a")->data;
    const auto rows = *from.load(spec(2, {part("a", 4, "b")}, PB_SHARD_ROWS), {PB_F32}, 1, 2);
    EXPECT_EQ(rows.data.data(), file + 16);
    EXPECT_THAT(values(rows.bias, PB_F32), ElementsAre(2, 3));
    EXPECT_NE(from.load(spec(2, {part("a", 4)}), {PB_BF16}, 0, 1)->data.data(), file);
    EXPECT_NE(from.load(spec(2, {part("a", 4)}, PB_SHARD_COLS), {PB_F32}, 0, 2)->data.data(), file);
    EXPECT_NE(from.load(spec(2, {part("a", 4), part("a", 4)}), {PB_F32}, 0, 1)->data.data(), file);
}

TEST_F(Loader, aligns_numbers_that_lie_at_any_byte_of_the_file) {
    std::string header = R"({"a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}})";
    header.resize(77, ' ');
    write("model.safetensors", safetensors(header, f32_bytes({3, 4})));
    const auto weight = *WeightSource::from_folder(folder)->load(spec(2, {part("a", 1)}), {PB_F32}, 0, 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weight.data.data()) % 4, 0u);
    EXPECT_THAT(values(weight.data, PB_F32), ElementsAre(3, 4));
}

TEST_F(Loader, reads_and_makes_up_the_same_with_many_threads_as_with_one) {
    ThreadPool pool(3);
    for (auto from :
         {source({counting("a", {1500, 600}, -4e5f), counting("b", {600, 1500}, 9)}), WeightSource::dummy(3)}) {
        auto threaded = from;
        threaded.read_with(pool);
        pb_weight_part turned = part("b", 1500);
        turned.transposed = 1;
        for (const auto& wanted : {spec(600, {part("a", 1500), turned}), spec(600, {part("a", 1500)}, PB_SHARD_COLS)})
            for (const pb_dtype dtype : {PB_F32, PB_BF16})
                EXPECT_EQ(values(threaded.load(wanted, {dtype}, 0, 2)->data, dtype),
                          values(from.load(wanted, {dtype}, 0, 2)->data, dtype));
    }
}

TEST_F(Loader, takes_over_the_memory_of_an_earlier_weight) {
    const auto from = source({counting("a", {4, 2}, 0), counting("b", {2, 2}, 10)});
    auto earlier = *from.load(spec(2, {part("a", 4)}), {PB_BF16}, 0, 1);
    const std::byte* const memory = earlier.data.data();
    const auto later = *from.load(spec(2, {part("b", 2)}), {PB_BF16}, 0, 1, std::move(earlier));
    EXPECT_EQ(later.data.data(), memory);
    EXPECT_THAT(values(later.data, PB_BF16), ElementsAre(10, 11, 12, 13));
}

TEST_F(Loader, adds_an_offset_to_a_vector_in_f32) {
    const auto from = source({counting("norm", {2}, 0)});
    pb_weight_spec plus_one = spec(2, {part("norm", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR);
    plus_one.offset = 1.001f; // which bf16 would round
    const auto weight = from.load(plus_one, {PB_BF16}, 0, 1);
    ASSERT_TRUE(weight) << weight.error();
    EXPECT_EQ(weight->dtype, PB_F32);
    EXPECT_THAT(values(weight->data, PB_F32), ElementsAre(1.001f, 2.001f));
}

TEST_F(Loader, takes_a_vector_of_one_dimension) {
    const auto from = source({counting("norm", {3}, 1)});
    const auto weight = from.load(spec(3, {part("norm", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR), {PB_BF16}, 0, 1);
    ASSERT_TRUE(weight) << weight.error();
    EXPECT_EQ(weight->rows, 1);
    EXPECT_THAT(values(weight->data, PB_BF16), ElementsAre(1, 2, 3));
}

TEST_F(Loader, reads_the_taps_of_a_convolution_by_channel_as_a_vector) {
    const auto from = source({counting("conv1d", {2, 1, 3}, 1), counting("other", {2, 3}, 1)});
    const auto taps = from.load(spec(6, {part("conv1d", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR), {PB_F32}, 0, 1);
    ASSERT_TRUE(taps) << taps.error();
    EXPECT_THAT(values(taps->data, PB_F32), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_FALSE(from.load(spec(6, {part("other", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR), {PB_F32}, 0, 1));
    EXPECT_FALSE(from.load(spec(5, {part("conv1d", 1)}, PB_SHARD_NONE, PB_WEIGHT_VECTOR), {PB_F32}, 0, 1));
}

TEST_F(Loader, says_which_shape_it_got_and_which_the_model_needs) {
    const auto from =
        source({counting("up", {3, 2}, 0), counting("up.bias", {3}, 0), {"ids", "I64", {1, 1}, std::string(8, '\0')}});
    EXPECT_EQ(from.load(spec(4, {part("up", 6)}), {PB_F32}, 0, 1).error(),
              "tensor 'up' is (3, 2) but the model needs (6, 4) (is config.json of another model?)");
    EXPECT_THAT(from.load(spec(2, {part("up", 3, "up")}), {PB_F32}, 0, 1).error(),
                HasSubstr("tensor 'up' is (3, 2) but the model needs (3)"));
    EXPECT_THAT(from.load(spec(2, {part("upp", 3)}), {PB_F32}, 0, 1).error(), HasSubstr("no tensor 'upp'"));
    EXPECT_THAT(from.load(spec(1, {part("ids", 1)}), {PB_F32}, 0, 1).error(),
                HasSubstr("tensor 'ids' holds i64, but a weight is f32, bf16 or f16"));
}

TEST_F(Loader, refuses_specs_that_make_no_sense) {
    const auto from = source({counting("a", {2, 2}, 0)});
    EXPECT_FALSE(from.load(spec(2, {part("a", 2)}), {PB_I8}, 0, 1));
    EXPECT_FALSE(from.load(spec(2, {part("a", 2)}), {PB_F32}, 2, 2));
    EXPECT_FALSE(from.load(spec(2, {part("a", 2)}), {PB_F32}, 0, 0));
    EXPECT_FALSE(from.load(spec(2, {}), {PB_F32}, 0, 1));
    EXPECT_FALSE(from.load(spec(-1, {part("a", 2)}), {PB_F32}, 0, 1));
    EXPECT_FALSE(WeightSource::dummy(1).load(spec(int64_t{1} << 40, {part("a", int64_t{1} << 40)}), {PB_F32}, 0, 1));
    auto many = spec(2, {part("a", 2)});
    many.part_count = 9;
    EXPECT_FALSE(from.load(many, {PB_F32}, 0, 1));
}

TEST_F(Loader, converts_between_dtypes_exactly_or_to_the_nearest_even) {
    const auto from =
        source({{"f16", "F16", {1, 4}, u16_bytes({0x3C00, 0xC000, 0x0001, 0x7C00})},
                {"bf16", "BF16", {1, 2}, u16_bytes({0x3F80, 0xC040})},
                {"f32", "F32", {1, 3}, f32_bytes({1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1p-8f + 0x1p-20f})}});
    EXPECT_THAT(values(from.load(spec(4, {part("f16", 1)}), {PB_F32}, 0, 1)->data, PB_F32),
                ElementsAre(1, -2, 0x1p-24f, INFINITY));
    EXPECT_THAT(values(from.load(spec(2, {part("bf16", 1)}), {PB_F32}, 0, 1)->data, PB_F32), ElementsAre(1, -3));
    EXPECT_THAT(values(from.load(spec(3, {part("f32", 1)}), {PB_BF16}, 0, 1)->data, PB_BF16),
                ElementsAre(1, 1 + 0x1p-6f, 1 + 0x1p-7f));
    EXPECT_THAT(values(from.load(spec(4, {part("f16", 1)}), {PB_BF16}, 0, 1)->data, PB_BF16),
                ElementsAre(1, -2, 0x1p-24f, INFINITY));
}

TEST(Convert, widens_every_half_precision_number) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const int exponent = static_cast<int>(bits >> 10 & 31), sign = bits & 0x8000 ? -1 : 1;
        const double mantissa = bits & 1023;
        const float got = f16_to_f32(static_cast<uint16_t>(bits));
        if (exponent == 31 && mantissa != 0)
            EXPECT_TRUE(std::isnan(got));
        else
            EXPECT_EQ(got, static_cast<float>(sign * (exponent == 31  ? INFINITY
                                                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                                                      : std::ldexp(1024 + mantissa, exponent - 25))));
        EXPECT_EQ(std::signbit(got), sign < 0);
    }
}

TEST_F(Loader, names_the_dtype_of_the_largest_tensor_and_takes_no_more_memory_for_half_precision) {
    EXPECT_EQ(*source({counting("norm", {2}, 0), {"w", "BF16", {2, 3}, std::string(12, 'x')}}).native_dtype({}),
              PB_BF16);
    const WeightSource half = source({{"w", "F16", {2, 3}, std::string(12, 'x')}});
    EXPECT_EQ(*half.native_dtype({}), PB_BF16);
    EXPECT_TRUE(half.stores_f16({}));
    EXPECT_EQ(*source({counting("w", {2, 2}, 0)}).native_dtype({{"dtype", "bfloat16"}}), PB_F32);
    EXPECT_THAT(source({{"w", "I8", {1}, "x"}}).native_dtype({}).error(), HasSubstr("no f32, bf16 or f16"));
    EXPECT_EQ(*WeightSource::dummy(0).native_dtype({{"torch_dtype", "bfloat16"}}), PB_BF16);
    EXPECT_EQ(*WeightSource::dummy(0).native_dtype({{"dtype", "float16"}}), PB_BF16);
    EXPECT_EQ(*WeightSource::dummy(0).native_dtype({}), PB_F32);
}

TEST(Dummy, depends_on_seed_name_and_index_alone) {
    std::vector<float> a(600), b(600), c(600);
    fill_dummy(1, "w", 20, 30, 0, 600, a.data());
    fill_dummy(1, "w", 20, 30, 0, 600, b.data());
    EXPECT_EQ(a, b);
    fill_dummy(2, "w", 20, 30, 0, 600, c.data());
    EXPECT_NE(a, c);
    fill_dummy(1, "v", 20, 30, 0, 600, c.data());
    EXPECT_NE(a, c);
}

TEST(Dummy, takes_eight_values_from_each_draw_of_the_generator) {
    constexpr int64_t kCols = 3, kFirst = 5;
    std::vector<float> got(1000);
    fill_dummy(11, "w", 500, kCols, kFirst, static_cast<int64_t>(got.size()), got.data());
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a of the name
    hash = (hash ^ 'w') * 0x100000001b3u;
    for (size_t i = 0; i < got.size(); ++i) {
        const size_t at = i + kFirst;
        const PhiloxBlock block = draw(11, hash, Stream::kWeights, static_cast<uint32_t>(at / 8));
        const uint32_t bits = block[at % 8 / 2] >> (16 * (at % 2)) & 0xffffu;
        EXPECT_NEAR(got[i], (bits + 0.5) / 0x8000 - 1, 1e-6) << i;
    }
}

TEST(Dummy, has_the_mean_and_the_variance_that_it_promises) {
    constexpr int64_t kRows = 500, kCols = 300, kNorm = 100000;
    std::vector<float> w(kRows * kCols), norm(kNorm);
    fill_dummy(5, "w", kRows, kCols, 0, kRows * kCols, w.data());
    fill_dummy(5, "norm", 1, kNorm, 0, kNorm, norm.data());
    double sum = 0, squares = 0, near_one = 0;
    for (const float x : w) {
        sum += x;
        squares += double{x} * x;
    }
    for (const float x : norm) near_one += x;
    const double n = static_cast<double>(w.size());
    EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1.0 / kCols / n));
    EXPECT_NEAR(squares / n * kCols, 1, 0.02);
    EXPECT_NEAR(near_one / static_cast<double>(norm.size()), 1, 1e-3);
}

TEST(Dummy, gives_ranks_the_slices_of_one_weight_and_biases_near_zero) {
    const auto from = WeightSource::dummy(9);
    const auto whole = *from.load(spec(6, {part("w", 4, "w.bias")}), {PB_F32}, 0, 1);
    const auto all = values(whole.data, PB_F32);
    const auto rows = values(from.load(spec(6, {part("w", 4)}, PB_SHARD_ROWS), {PB_F32}, 1, 2)->data, PB_F32);
    EXPECT_EQ(rows, std::vector<float>(all.begin() + 12, all.end()));
    const auto cols = values(from.load(spec(6, {part("w", 4)}, PB_SHARD_COLS), {PB_F32}, 1, 2)->data, PB_F32);
    for (size_t r = 0; r < 4; ++r)
        for (size_t c = 0; c < 3; ++c) EXPECT_EQ(cols[r * 3 + c], all[r * 6 + 3 + c]);
    for (const float b : values(whole.bias, PB_F32)) EXPECT_LT(std::abs(b), 0.1f);
}

TEST(Dummy, makes_the_same_values_in_chunks_as_at_once) {
    constexpr int64_t kCols = 70001; // more than a chunk, no multiple of a block
    std::vector<float> at_once(3 * kCols);
    fill_dummy(4, "w", 3, kCols, 0, 3 * kCols, at_once.data());
    EXPECT_EQ(values(WeightSource::dummy(4).load(spec(kCols, {part("w", 3)}), {PB_F32}, 0, 1)->data, PB_F32), at_once);
}

TEST_F(Loader, an_identity_changes_with_the_configuration_the_shapes_and_the_values) {
    write("config.json", "{}");
    std::vector<std::string> seen;
    const auto note = [&] { seen.push_back(*model_identity(folder)); };
    source({counting("a", {4}, 0)});
    note();
    source({counting("a", {4}, 1)});
    note();
    source({counting("a", {2, 2}, 0)});
    note();
    source({counting("b", {4}, 0)});
    note();
    write("config.json", "{ }");
    note();
    for (size_t i = 0; i < seen.size(); ++i)
        for (size_t k = 0; k < i; ++k) EXPECT_NE(seen[i], seen[k]) << i << " and " << k;
    note();
    EXPECT_EQ(seen[seen.size() - 2], seen.back());
}

}  // namespace
}  // namespace patchbay::weights::loader_test
