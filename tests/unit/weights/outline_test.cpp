// Weights of a checkpoint that is not there: what a simulated device is given for them.
#include <gtest/gtest.h>

#include <tuple>

#include "unit/weights/weight_specs.hpp"

namespace patchbay::weights::outline_test {
namespace {

FlatConfig fp8(const std::string& block_cols) {
    return {{"vocab_size", "1000"},
            {"quantization_config.quant_method", "fp8"},
            {"quantization_config.weight_block_size.0", "128"},
            {"quantization_config.weight_block_size.1", block_cols}};
}

std::tuple<pb_dtype, uint32_t> form_of(const FlatConfig& config, const pb_weight_spec& wanted, uint32_t rank,
                                       uint32_t size) {
    const auto from = WeightSource::shapes(config);
    if (!from) return {PB_U8, 0};
    const auto loaded = from->load(wanted, {PB_BF16, Quantization::kAsStored}, rank, size);
    return loaded ? std::tuple(loaded->dtype, loaded->group) : std::tuple(pb_dtype{PB_U8}, 0u);
}

const std::tuple<pb_dtype, uint32_t> kReal{PB_BF16, 0};

TEST(Outline, KeepsLinearsOfFp8InTheGroupsThatARankHas) {
    const pb_weight_spec whole = spec(2432, {part("down", 64)}), cut = spec(2432, {part("down", 64)}, PB_SHARD_COLS);
    EXPECT_EQ(form_of(fp8("128"), whole, 0, 1), std::tuple(PB_FP8, 128u));
    EXPECT_EQ(form_of(fp8("128"), cut, 1, 2), std::tuple(PB_FP8, 64u)); // from column 1216 on
    EXPECT_EQ(form_of(fp8("24"), whole, 0, 1), kReal);
}

TEST(Outline, LeavesTheHeadRealOnEveryRank) {
    const pb_weight_spec head = spec(256, {part("lm_head", 1000)}, PB_SHARD_ROWS);
    EXPECT_EQ(form_of(fp8("128"), head, 0, 1), kReal);
    EXPECT_EQ(form_of(fp8("128"), head, 1, 2), kReal);
}

}  // namespace
}  // namespace patchbay::weights::outline_test
