// How embeddings are pooled, as a GGUF file says.
#include "serve/pooler.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "serve/temporary_folder.hpp"
#include "unit/weights/gguf_fixture.hpp"

namespace patchbay::serve::testing::pooler_test {
namespace {

using engine::PoolingType;

Pooler pooler_of(weights::GgufBytes bytes, const config::PoolerSettings& settings = {}) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "m.gguf", std::ios::binary) << bytes.with(std::string(2048, '\0'));
    return read_pooler(settings, folder.path() / "m.gguf");
}

TEST(Pooler, OfAGgufFileIsThatOfItsPoolingType) {
    const auto type = [](uint32_t value) { return weights::tiny_llama().key("llama.pooling_type", value); };
    EXPECT_EQ(pooler_of(type(1)).pooling, PoolingType::kMean);
    EXPECT_EQ(pooler_of(type(3)).pooling, PoolingType::kLast);
    EXPECT_EQ(pooler_of(weights::tiny_llama()).pooling, PoolingType::kLast);
    for (const auto& given : {type(1), type(3), weights::tiny_llama()}) {
        EXPECT_FALSE(pooler_of(given).refusal);
        EXPECT_TRUE(pooler_of(given).normalize);
    }
    for (const uint32_t other : {0u, 2u, 4u, 9u}) {
        const auto refusal = pooler_of(type(other)).refusal;
        ASSERT_TRUE(refusal);
        EXPECT_EQ(refusal->code, StatusCode::kUnsupported);
        EXPECT_THAT(refusal->text, ::testing::HasSubstr("m.gguf: pooling_type is " + std::to_string(other) +
                                                        ", expected 1 (mean) or 3 (last)"));
    }
    const Pooler configured = pooler_of(type(2), {config::PoolingType::kMean, {}});
    EXPECT_EQ(configured.pooling, PoolingType::kMean);
    EXPECT_FALSE(configured.refusal);
    EXPECT_TRUE(pooler_of(weights::tiny_llama().key("llama.pooling_type", "mean")).refusal);
}

}  // namespace
}  // namespace patchbay::serve::testing::pooler_test
