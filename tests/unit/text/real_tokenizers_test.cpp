// Tokenizers and texts that others wrote, under $PATCHBAY_TEST_DATA. The demo models' own tokenizer is tested in
// tests/golden.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "text/tokenizer.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::text::real_tokenizers_test {
namespace {

namespace fs = std::filesystem;

fs::path test_data() {
    const char* given = std::getenv("PATCHBAY_TEST_DATA");
    return given ? fs::path(given) : fs::path(kSourceDir) / ".." / "shared" / "data";
}

struct Vector {
    std::string text;
    std::vector<TokenId> ids;
};

// vectors.inp: texts parted by a line of its own; vectors.out: a line of ids for each.
std::vector<Vector> vectors(const fs::path& folder) {
    const std::string texts = file_text(folder / "vectors.inp"), bar = "\n__ggml_vocab_test__\n";
    std::istringstream lines(file_text(folder / "vectors.out"));
    std::vector<Vector> out;
    for (size_t from = 0; from < texts.size();) {
        const size_t end = std::min(texts.find(bar, from), texts.size());
        std::string line;
        if (end == texts.size() || !std::getline(lines, line)) break;
        std::istringstream numbers(line);
        out.push_back({texts.substr(from, end - from), {std::istream_iterator<TokenId>(numbers), {}}});
        from = end + bar.size();
    }
    return out;
}

void expect_vectors(const std::string& name) {
    const fs::path folder = test_data() / "tokenizers" / name;
    if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder << "; set PATCHBAY_TEST_DATA";
    const auto tokenizer = Tokenizer::load(folder);
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    const auto cases = vectors(folder);
    ASSERT_GE(cases.size(), 45u);
    for (const auto& [text, ids] : cases) {
        EXPECT_EQ((*tokenizer)->encode(text), ids) << "text: '" << text << "'";
        EXPECT_EQ((*tokenizer)->decode(ids), text);
    }
}

TEST(RealTokenizers, gpt2_gives_the_published_ids) { expect_vectors("gpt2"); }
TEST(RealTokenizers, qwen2_from_vocab_and_merges_gives_the_published_ids) { expect_vectors("qwen2"); }

TEST(RealTokenizers, llama2_from_a_sentencepiece_model_gives_the_published_ids) { expect_vectors("llama2"); }

TEST(RealTokenizers, mistral_gives_the_published_ids_and_texts) {
    const fs::path folder = test_data() / "tokenizers" / "mistral_v03";
    if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder << "; set PATCHBAY_TEST_DATA";
    const auto tokenizer = Tokenizer::load(folder);
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    const auto published = nlohmann::json::parse(file_text(folder / "encodings.json"));
    ASSERT_GE(published["entries"].size(), 40u);
    for (const auto& entry : published["entries"]) {
        const auto ids = entry["ids_special"].get<std::vector<TokenId>>();
        EXPECT_EQ((*tokenizer)->encode(entry["text"].get<std::string>()), ids) << "text: " << entry["text"];
        const auto special = [&](TokenId id) { return (*tokenizer)->is_special(id); };
        if (std::any_of(ids.begin() + 1, ids.end(), special)) continue; // the published texts have them
        EXPECT_EQ((*tokenizer)->decode(ids), entry["decode"].get<std::string>()) << "text: " << entry["text"];
    }
}

TEST(RealTokenizers, a_whole_library_of_prose_comes_back_as_it_was) {
    const fs::path file = test_data() / "text" / "childrens_classics.txt",
                   folder = test_data() / "tokenizers" / "qwen2";
    if (!fs::exists(file) || !fs::exists(folder)) GTEST_SKIP() << "no " << file << "; set PATCHBAY_TEST_DATA";
    const auto tokenizer = Tokenizer::load(folder);
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    std::string text = file_text(file), joined;
    for (const TokenId id : (*tokenizer)->encode(text)) joined += (*tokenizer)->token_bytes(id);
    EXPECT_EQ(joined, text);
}

TEST(Tokenizer, says_what_a_folder_without_a_tokenizer_holds) {
    const fs::path folder = fs::temp_directory_path() / ("patchbay-empty-tokenizer-" + std::to_string(getpid()));
    fs::create_directories(folder);
    EXPECT_THAT(Tokenizer::load(folder).error(), testing::HasSubstr("no tokenizer.json in"));
    std::ofstream(folder / "tokenizer.model") << "x";
    EXPECT_THAT(Tokenizer::load(folder).error(),
                testing::HasSubstr("tokenizer.model: no SentencePiece model that can be read"));
    std::ofstream(folder / "vocab.json") << "{}";
    std::ofstream(folder / "merges.txt") << "";
    EXPECT_THAT(Tokenizer::load(folder).error(), testing::HasSubstr("does not say how text is split"));
    std::ofstream(folder / "tokenizer.json") << "{";
    EXPECT_THAT(Tokenizer::load(folder).error(), testing::HasSubstr("tokenizer.json:1:"));
    fs::remove_all(folder);
    EXPECT_THAT(Tokenizer::load(folder).error(), testing::HasSubstr("no tokenizer folder"));
}

}  // namespace
}  // namespace patchbay::text::real_tokenizers_test
