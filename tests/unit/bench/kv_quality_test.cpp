#include "bench/kv_quality.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::bench::kv_quality_test {
namespace {

using namespace engine;
using namespace engine::testing;

TextScores must(Result<TextScores> scores) {
    if (!scores) throw std::runtime_error(scores.error());
    return *std::move(scores);
}

TextScores score(const std::vector<int32_t>& tokens, uint32_t window) {
    return must(score_text(tiny_model(), registry(), tokens, window));
}

double total(const TextScores& s) { return s.nats * double(s.likeliest.size()); }

// What the engine itself says of a token that it chose.
TEST(KvQuality, AddsUpWhatTheEngineSaysOfEachToken) {
    Harness h(tiny_model());
    SamplingParams p = greedy(9);
    p.ignore_eos = true;
    p.logprobs = 1;
    std::vector<int32_t> tokens = random_prompt(4, 70);
    const Output& said = h.run(h.add(tokens, p));
    const TextScores before = score(tokens, 512);
    double expected = total(before);
    for (const TokenLogprobs& t : said.logprobs) expected -= double(t.sampled);
    tokens.insert(tokens.end(), said.tokens.begin(), said.tokens.end());
    const TextScores after = score(tokens, 512);
    EXPECT_NEAR(total(after), expected, 1e-3);
    ASSERT_EQ(after.likeliest.size(), tokens.size() - 1);
    for (size_t i = 0; i < said.tokens.size(); ++i)
        EXPECT_EQ(after.likeliest[before.likeliest.size() + i], said.tokens[i]);
}

TEST(KvQuality, CutsTheTextIntoWindowsThatKnowNothingOfOneAnother) {
    const std::vector<int32_t> tokens = random_prompt(8, 150);
    const TextScores first = score({tokens.begin(), tokens.begin() + 100}, 100),
                     second = score({tokens.begin() + 100, tokens.end()}, 100), both = score(tokens, 100);
    EXPECT_EQ(both.likeliest.size(), 99u + 49);
    EXPECT_NEAR(total(both), total(first) + total(second), 1e-9);
}

TEST(KvQuality, ComparesChoicesAndPerplexities) {
    const TextScores a{"float32", 1024, std::log(8.0), {1, 2, 3, 4}}, b{"int8", 320, std::log(9.0), {1, 2, 0, 4}};
    EXPECT_DOUBLE_EQ(a.perplexity(), 8);
    EXPECT_EQ(agreement(b, a), 0.75);
    const std::string table = table_of(std::vector{a, b});
    EXPECT_NE(table.find("int8                                      320       9.0000   +12.500%       75.00%"),
              std::string::npos)
        << table;
}

TEST(KvQuality, RefusesWhatCannotBeScored) {
    EXPECT_EQ(score_text(tiny_model(), registry(), std::vector<int32_t>{1}, 9).error(),
              "a text and windows of 2 tokens at least are needed");
    EXPECT_EQ(score_text(tiny_model(), registry(), std::vector<int32_t>{1, 300}, 9).error(),
              "the text has tokens past the model's vocabulary of 300");
    EXPECT_EQ(score_text(tiny_model(), registry(), std::vector<int32_t>{1, 2}, 513).error(),
              "windows of 513 tokens are longer than the model's 512");
}

}  // namespace
}  // namespace patchbay::bench::kv_quality_test
