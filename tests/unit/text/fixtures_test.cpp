// Small tokenizers of every kind, and what the reference implementations say of a list of texts; made by
// fixtures/make_fixtures.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "base/utf8.hpp"
#include "text/characters.hpp"
#include "text/detokenizer.hpp"
#include "text/sentencepiece_tokenizer.hpp"
#include "text/tokenizer_json.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::text::fixtures_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path fixtures() { // another folder: for a longer comparison by hand
    const char* given = std::getenv("PATCHBAY_TOKENIZER_FIXTURES");
    return given ? fs::path(given) : fs::path(kSourceDir) / "tests" / "unit" / "text" / "fixtures";
}

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(fixtures()))
        if (entry.path().extension() == ".json") out.push_back(entry.path().stem().string());
    std::sort(out.begin(), out.end());
    return out;
}

Result<std::shared_ptr<const Tokenizer>> build(const json& fixture) {
    if (fixture.contains("tokenizer")) return tokenizer_from_json(fixture["tokenizer"], json::object(), "fixture");
    PB_TRY(const auto model, parse_sentencepiece(file_text(fixtures() / fixture["model"].get<std::string>())));
    return sentencepiece_tokenizer(model, json::object(), "fixture");
}

std::string streamed(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids) {
    Detokenizer detokenizer(tokenizer);
    std::string out;
    for (const TokenId id : ids) out += detokenizer.add(id);
    return out + detokenizer.finish();
}

// After tokens whose text is known, of which nothing is said again.
std::string continued(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids,
                      size_t before) {
    Detokenizer detokenizer(tokenizer, std::span(ids).first(before));
    std::string out;
    for (const TokenId id : std::span(ids).subspan(before)) out += detokenizer.add(id);
    return out + detokenizer.finish();
}

// Without the whole characters that both begin with.
std::string without_begin(const std::string& text, const std::string& begin) {
    const auto at = std::mismatch(text.begin(), text.end(), begin.begin(), begin.end()).first;
    auto same = static_cast<size_t>(at - text.begin());
    while (same > 0 && same < text.size() && continues_character(text[same])) --same;
    return text.substr(same);
}

class ReferenceFixtures : public testing::TestWithParam<std::string> {};

TEST_P(ReferenceFixtures, give_the_ids_and_texts_of_the_reference_implementation) {
    const json fixture = json::parse(file_text(fixtures() / (GetParam() + ".json")));
    const auto tokenizer = build(fixture);
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    ASSERT_GE(fixture["cases"].size(), 30u);
    for (const json& entry : fixture["cases"])
        EXPECT_EQ((*tokenizer)->encode(entry["text"].get<std::string>()), entry["ids"].get<std::vector<TokenId>>())
            << "text: " << entry["text"];
    for (const char* list : {"cases", "decodes"})
        for (const json& entry : fixture[list]) {
            const auto ids = entry["ids"].get<std::vector<TokenId>>();
            EXPECT_EQ(streamed(*tokenizer, ids), (*tokenizer)->decode(ids)) << entry["ids"];
            if (entry["decoded"].is_null()) continue; // the reference implementation could not
            EXPECT_EQ((*tokenizer)->decode(ids), entry["decoded"].get<std::string>()) << entry["ids"];
        }
}

// Whatever tokens a text is cut into: what comes after the cut is the text without what was there before.
TEST_P(ReferenceFixtures, continue_a_text_after_any_of_its_tokens) {
    const json fixture = json::parse(file_text(fixtures() / (GetParam() + ".json")));
    const auto tokenizer = build(fixture);
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    std::vector<std::vector<TokenId>> texts;
    for (const char* list : {"cases", "decodes"})
        for (const json& entry : fixture[list]) texts.push_back(entry["ids"].get<std::vector<TokenId>>());
    std::mt19937 random(31);
    for (size_t round = 0; round < 60; ++round) {
        std::vector<TokenId>& ids = texts.emplace_back();
        while (ids.size() < 30) // some of them several times
            ids.insert(ids.end(), round % 3 == 0 ? 1 + random() % 12 : 1,
                       static_cast<TokenId>(random() % (*tokenizer)->vocab_size()));
        const auto space = (*tokenizer)->id_of("\u2581");
        if (space && round % 2) ids.insert(ids.begin() + random() % 9, 10, *space);
    }
    for (const auto& ids : texts) {
        const std::string whole = (*tokenizer)->decode(ids);
        for (size_t before = 0; before <= ids.size(); ++before) {
            const std::string said = (*tokenizer)->decode({ids.begin(), ids.begin() + static_cast<ptrdiff_t>(before)});
            ASSERT_EQ(continued(*tokenizer, ids, before), without_begin(whole, said))
                << json(ids) << " after " << before << ": " << whole;
        }
    }
}

std::string random_text(std::mt19937& random) { // any character but surrogates
    std::string out;
    for (size_t n = random() % 60; n > 0; --n) {
        const uint32_t range = random() % 4 ? 0x250u : 0x110000u;
        auto c = static_cast<char32_t>(random() % range);
        if (c >= 0xD800 && c < 0xE000) c = ' ';
        append_character(out, c);
    }
    return out;
}

TEST(Fixtures, of_byte_level_vocabularies_give_back_any_text) {
    std::mt19937 random(29);
    for (const char* name : {"gpt2", "llama3", "contiguous"}) {
        const auto tokenizer = build(json::parse(file_text(fixtures() / (std::string(name) + ".json"))));
        ASSERT_TRUE(tokenizer) << tokenizer.error();
        for (int round = 0; round < 1000; ++round) {
            const std::string text = random_text(random);
            const auto ids = (*tokenizer)->encode(text);
            EXPECT_EQ((*tokenizer)->decode(ids), text);
            EXPECT_EQ(streamed(*tokenizer, ids), text);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Text, ReferenceFixtures, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace patchbay::text::fixtures_test
