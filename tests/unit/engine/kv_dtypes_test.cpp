// Types of keys and values, of all layers and of some.
#include <gmock/gmock.h>

#include <cmath>

#include "unit/engine/draft_fixture.hpp"

namespace patchbay::engine::testing::kv_dtypes_test {
namespace {

using ::testing::HasSubstr;
using config::KvDType;

constexpr uint64_t kTokensAPage = 8, kRows = 2 * 2; // of two kv heads, keys and values, of 16 elements each

config::EngineConfig with(KvDType kv, std::vector<config::KvDTypeOfLayers> layers = {}) {
    config::EngineConfig c = tiny_model();
    c.engine.kv_cache_dtype = kv;
    c.engine.kv_cache_dtype_layers = std::move(layers);
    return c;
}

// A layer's in a page, as `reference` lays it: no groups of tokens that are filled up.
uint64_t layer_bytes(uint64_t row) { return kTokensAPage * kRows * row; }

// After each of some prompts, the logprobs of the five most likely next tokens.
std::vector<double> logprobs(const config::EngineConfig& c) {
    Harness h(c);
    SamplingParams p = greedy(1);
    p.ignore_eos = true;
    p.logprobs = 5;
    std::vector<double> out;
    for (uint64_t seed = 1; seed <= 12; ++seed)
        for (const auto& top : h.run(h.add(random_prompt(seed, 60), p)).logprobs.at(0).top) out.push_back(top.second);
    return out;
}

TEST(KvDTypes, TakeTheBytesOfTheirCodesAndScales) {
    for (const auto& [kv, row, word] : {std::tuple{KvDType::kF32, 64u, "float32"}, {KvDType::kBf16, 32u, "bfloat16"},
                                        {KvDType::kFp8, 16u + 4, "fp8"}, {KvDType::kInt8, 16u + 4, "int8"}}) {
        config::EngineConfig c = with(kv);
        c.attention = {"reference", {}};
        const Harness h(c);
        EXPECT_EQ(h.engine->facts().kv.dtype, word);
        EXPECT_EQ(h.engine->facts().kv.page_bytes, 2 * layer_bytes(row));
    }
}

TEST(KvDTypes, OfSomeLayersTakeThePlaceOfTheOthers) {
    config::EngineConfig c = with(KvDType::kInt8, {{"0", 0, 1, KvDType::kF32}});
    c.model.shape["num_hidden_layers"] = "4";
    c.attention = {"reference", {}};
    const Harness h(c);
    EXPECT_EQ(h.engine->facts().kv.dtype, "int8, 0: float32");
    EXPECT_EQ(h.engine->facts().kv.page_bytes, layer_bytes(64)); // three rows of 20 bytes are the closest to one of 64
    EXPECT_EQ(h.engine->facts().kv.groups, 2u);
}

TEST(KvDTypes, OfLayersThatTheModelDoesNotHaveAreRefused) {
    EXPECT_THAT(refusal(with(KvDType::kInt8, {{"1-2", 1, 2, KvDType::kF32}})),
                HasSubstr("kv_cache_dtype_layers names layers 1-2, the model has 2 (0 to 1)"));
    EXPECT_THAT(refusal(with(KvDType::kInt8, {{"last 3", std::nullopt, 3, KvDType::kF32}})),
                HasSubstr("kv_cache_dtype_layers names layers last 3, the model has 2"));
    const config::KvDTypeOfLayers second{"1", 1, 1, KvDType::kF32}, last{"last 1", std::nullopt, 1, KvDType::kBf16};
    EXPECT_THAT(refusal(with(KvDType::kInt8, {second, last})),
                HasSubstr("kv_cache_dtype_layers names layer 1 twice, in 1 and in last 1"));
}

TEST(KvDTypes, CostLittleAndTheLessTheFewerLayersHaveThem) {
    const std::vector<double> exact = logprobs(with(KvDType::kF32));
    const auto distance = [&](const config::EngineConfig& c) {
        const std::vector<double> got = logprobs(c);
        double sum = 0;
        for (size_t i = 0; i < got.size(); ++i) sum += std::abs(got[i] - exact[i]);
        return sum / double(got.size());
    };
    const double int8 = distance(with(KvDType::kInt8)), fp8 = distance(with(KvDType::kFp8));
    EXPECT_GT(int8, 0);
    EXPECT_LT(int8, 0.02);
    EXPECT_GT(fp8, int8);
    EXPECT_LT(fp8, 0.1);
    EXPECT_EQ(distance(with(KvDType::kFp8, {{"0-1", 0, 2, KvDType::kF32}})), 0);
    EXPECT_LT(distance(with(KvDType::kFp8, {{"last 1", std::nullopt, 1, KvDType::kF32}})), fp8);
}

TEST(KvDTypes, GiveTheSameTextWhereverPromptsAreCut) {
    config::EngineConfig c = with(KvDType::kInt8, {{"last 1", std::nullopt, 1, KvDType::kBf16}});
    const std::vector<double> whole = logprobs(c);
    c.engine.max_num_batched_tokens = 7;
    c.engine.max_num_seqs = 7;
    EXPECT_EQ(logprobs(c), whole);
}

}  // namespace
}  // namespace patchbay::engine::testing::kv_dtypes_test
