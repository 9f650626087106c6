// What a tokenizer that cannot be had is refused as.
#include "engine/load_tokenizer.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "paths.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine::load_tokenizer_test {
namespace {

TEST(LoadTokenizer, CallsAFileThatIsNoneInvalid) {
    const std::filesystem::path folder = testing::temporary_folder() / "load_tokenizer_test";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "tokenizer.json") << "{\"model\": 3}";
    const auto loaded = load_tokenizer(folder);
    std::filesystem::remove_all(folder);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.code(), StatusCode::kInvalid) << loaded.error();
}

TEST(LoadTokenizer, ReadsThatOfTheDemoModel) {
    const auto loaded = load_tokenizer(std::filesystem::path(kSourceDir) / "models/demo-target");
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_FALSE((*loaded)->encode("Once upon a time").empty());
}

}  // namespace
}  // namespace patchbay::engine::load_tokenizer_test
