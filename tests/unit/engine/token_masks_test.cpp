// bad_words and allowed_token_ids: what is sampled is what a naive reading of the whole row of logits would choose.
#include <gmock/gmock.h>

#include <set>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::token_masks_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

config::EngineConfig speaking() { // a random model with the demo model's tokens
    config::EngineConfig c = tiny_model();
    c.model.shape["vocab_size"] = "2048";
    c.model.tokenizer = repository("models/demo-target");
    c.engine.max_logprobs = -1;
    return c;
}

using Words = std::vector<std::vector<TokenId>>;

bool is_banned(const std::vector<TokenId>& output, TokenId next, const Words& words) {
    std::vector<TokenId> all = output;
    all.push_back(next);
    for (const auto& word : words)
        if (all.size() >= word.size() && std::equal(word.rbegin(), word.rend(), all.rbegin())) return true;
    return false;
}

// A token a request, each chosen among all of the vocabulary by its log-probability.
std::vector<TokenId> by_hand(std::vector<TokenId> prompt, uint32_t count, const Words& bad,
                             const std::set<TokenId>& allowed) {
    Harness h(speaking());
    std::vector<TokenId> out;
    for (uint32_t i = 0; i < count; ++i) {
        SamplingParams p = greedy(1);
        p.logprobs = -1;
        const Output one = h.run(h.add(prompt, p));
        const auto& top = one.logprobs.at(0).top;
        EXPECT_EQ(top.size(), 2048u);
        const auto chosen = std::find_if(top.begin(), top.end(), [&](const auto& t) {
            return !is_banned(out, t.first, bad) && (allowed.empty() || allowed.contains(t.first));
        });
        out.push_back(chosen->first);
        prompt.push_back(chosen->first);
    }
    return out;
}

// Words of one and of several tokens that the model would say: taken from what it says without them.
struct Taboo {
    std::vector<std::string> texts;
    Words tokens;
};
Taboo taboo(const text::Tokenizer& tokenizer, const std::vector<TokenId>& said) {
    Taboo out;
    const auto add = [&](std::vector<TokenId> tokens) {
        const std::string text = tokenizer.decode(tokens);
        if (tokenizer.encode(text) != tokens || text.empty() || text[0] == ' ') return; // spelled otherwise
        out.texts.push_back(text);
        out.tokens.push_back(tokens);
        const auto spaced = tokenizer.encode(" " + text);
        if (spaced.size() < tokens.size() || !std::equal(tokens.rbegin(), tokens.rend(), spaced.rbegin()))
            out.tokens.push_back(spaced);
    };
    for (size_t i = 0; i + 2 < said.size() && out.texts.size() < 6; ++i)
        if (i % 3 == 0) add({said[i]});
        else if (i % 3 == 1) add({said[i], said[i + 1]});
        else add({said[i], said[i + 1], said[i + 2]});
    return out;
}

TEST(BadWords, AreNotSaidAndNothingElseChanges) {
    Harness h(speaking());
    size_t several = 0;
    for (uint64_t seed = 1; seed < 4; ++seed) {
        const auto prompt = random_prompt(seed, 9, 2000);
        const std::vector<TokenId> said = h.run(h.add(prompt, greedy(24))).tokens;
        const Taboo bad = taboo(*h.engine->tokenizer(), said);
        ASSERT_GT(bad.texts.size(), 2u);
        SamplingParams p = greedy(24);
        p.bad_words = bad.texts;
        const std::vector<TokenId> got = h.run(h.add(prompt, p)).tokens;
        EXPECT_EQ(got, by_hand(prompt, 24, bad.tokens, {}));
        EXPECT_NE(got, said);
        for (const auto& word : bad.tokens) several += word.size() > 1;
    }
    EXPECT_GT(several, 3u);
}

TEST(BadWords, AreNotSaidAfterASpaceEither) {
    Harness h(speaking());
    const auto& tokenizer = *h.engine->tokenizer();
    const TokenId bare = tokenizer.encode("the").at(0), spaced = tokenizer.encode(" the").at(0);
    ASSERT_NE(bare, spaced);
    SamplingParams p = greedy(8);
    p.logit_bias = {{spaced, 90.0f}, {bare, 80.0f}};
    EXPECT_THAT(h.run(h.add({5, 6}, p)).tokens, ::testing::Each(spaced));
    p.bad_words = {"the"};
    const auto got = h.run(h.add({5, 6}, p)).tokens;
    EXPECT_THAT(got, ::testing::Each(::testing::AllOf(::testing::Ne(spaced), ::testing::Ne(bare))));
    p.bad_words = {" the"}; // whose leading space is not looked at
    EXPECT_EQ(h.run(h.add({5, 6}, p)).tokens, got);

    const std::vector<TokenId> whole = tokenizer.encode(" will"); // a token where the bare word is several
    ASSERT_EQ(whole.size(), 1u);
    ASSERT_GT(tokenizer.encode("will").size(), 1u);
    p.logit_bias = {{whole[0], 90.0f}};
    p.bad_words = {"will"};
    EXPECT_THAT(h.run(h.add({5, 6}, p)).tokens, ::testing::Each(::testing::Ne(whole[0])));
}

TEST(BadWords, SeeAcceptedDrafts) {
    config::EngineConfig c = speaking();
    Harness plain(c);
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 5;
    Harness drafted(c);
    uint64_t accepted = 0;
    for (uint64_t seed = 1; seed < 5; ++seed) {
        std::vector<TokenId> prompt = random_prompt(seed, 6, 2000);
        const auto said = plain.run(plain.add(prompt, greedy(30))).tokens;
        SamplingParams p = greedy(30);
        p.bad_words = taboo(*plain.engine->tokenizer(), said).texts;
        const auto expected = plain.run(plain.add(prompt, p)).tokens;
        // The drafts are what it says without them, and with them.
        prompt.insert(prompt.begin(), said.begin(), said.end());
        prompt.insert(prompt.begin(), expected.begin(), expected.end());
        const auto want = plain.run(plain.add(prompt, p)).tokens;
        EXPECT_EQ(drafted.run(drafted.add(prompt, p)).tokens, want);
    }
    for (const StepReport& r : drafted.steps) accepted += r.drafts.accepted_tokens;
    EXPECT_GT(accepted, 0u);
}

TEST(AllowedTokens, AreAllThatIsSampled) {
    Harness h(speaking());
    const auto prompt = random_prompt(3, 9, 2000);
    SamplingParams p = greedy(20);
    p.allowed_token_ids = random_prompt(8, 40, 2000);
    const std::set<TokenId> allowed(p.allowed_token_ids->begin(), p.allowed_token_ids->end());
    EXPECT_EQ(h.run(h.add(prompt, p)).tokens, by_hand(prompt, 20, {}, allowed));
    p = seeded(4, 60);
    p.allowed_token_ids = {{7, 2047, 31}};
    p.n = 2;
    const RequestId id = h.add(prompt, p);
    h.run_all();
    for (const auto* tokens : {&h.outputs.at(id).tokens, &h.others.at({id, 1}).tokens})
        EXPECT_EQ(std::set<TokenId>(tokens->begin(), tokens->end()), (std::set<TokenId>{7, 31, 2047}));
}

TEST(AllowedTokens, AreIntersectedWithAGrammar) {
    Harness h(speaking());
    const auto& tokenizer = *h.engine->tokenizer();
    SamplingParams p = seeded(5, 40);
    p.structured_outputs = grammar::StructuredOutputs{.regex = "[abc]{30}"};
    p.allowed_token_ids = {{tokenizer.encode("a").at(0), tokenizer.encode("c").at(0), tokenizer.encode("x").at(0)}};
    const std::string text = h.run(h.add({5, 6}, p)).text;
    EXPECT_EQ(text.size(), 30u);
    EXPECT_EQ(text.find_first_not_of("ac"), std::string::npos) << text;
    p.allowed_token_ids.reset();
    const std::vector<std::string> bad = {"b", "ac", "cca"};
    Words words;
    for (const std::string& word : bad) words.push_back(tokenizer.encode(word));
    const auto says_them = [&](const Output& out) {
        for (size_t i = 0; i < out.tokens.size(); ++i)
            if (is_banned({out.tokens.begin(), out.tokens.begin() + static_cast<ptrdiff_t>(i)}, out.tokens[i], words))
                return true;
        return false;
    };
    EXPECT_TRUE(says_them(h.run(h.add({5, 6}, p))));
    p.bad_words = bad; // tokens, which say nothing of longer ones that have them inside
    const Output without = h.run(h.add({5, 6}, p));
    EXPECT_FALSE(says_them(without));
    EXPECT_EQ(without.text.size(), 30u);
    EXPECT_EQ(without.text.find_first_not_of("abc"), std::string::npos) << without.text;
}

TEST(AllowedTokens, ThatLeaveNothingFailTheirRequestAlone) {
    Harness h(speaking());
    const auto& tokenizer = *h.engine->tokenizer();
    const TokenId a = tokenizer.encode("a").at(0), b = tokenizer.encode("b").at(0);
    SamplingParams p = greedy(20);
    p.allowed_token_ids = {{a}};
    p.bad_words = {"aa"};
    ASSERT_EQ(tokenizer.encode("aa").size(), 2u);
    const RequestId lost = h.add({5, 6}, p), other = h.add({5, 6}, greedy(20));
    h.run_all();
    EXPECT_EQ(h.outputs.at(lost).tokens, std::vector<TokenId>{a});
    EXPECT_EQ(h.outputs.at(lost).finish, FinishReason::kError);
    EXPECT_EQ(h.outputs.at(lost).stop_reason, "bad_words forbid every token that is allowed here");
    EXPECT_EQ(h.outputs.at(other).tokens.size(), 20u);
    p.bad_words.clear();
    p.structured_outputs = grammar::StructuredOutputs{.regex = "b+"};
    EXPECT_THAT(h.run(h.add({5, 6}, p)).stop_reason, HasSubstr("goes on with the structured output"));
    for (const StepReport& r : h.steps) EXPECT_EQ(r.calls.sampler_faults, 0u);
    p.structured_outputs.reset();
    const auto refusal = [&] {
        Request r;
        r.prompt = {1, 2};
        r.sampling = p;
        return h.engine->add_request(r).error();
    };
    p.bad_words = {"a"};
    EXPECT_EQ(refusal(), "bad_words forbid all of allowed_token_ids");
    p.bad_words = {" \t"};
    EXPECT_EQ(refusal(), "bad_words: a word that is empty or blank");
    p.bad_words.clear();
    p.stop_token_ids = {a};
    p.min_tokens = 1;
    EXPECT_EQ(refusal(), "min_tokens forbids all allowed tokens, which stop the output");
    p.allowed_token_ids = {{a, b, 2048}};
    EXPECT_EQ(refusal(), "allowed_token_ids has 2048, expected 0 to 2047");
    p.allowed_token_ids = std::vector<TokenId>{};
    EXPECT_EQ(refusal(), "allowed_token_ids is empty, expected at least one token");
}

}  // namespace
}  // namespace patchbay::engine::token_masks_test
