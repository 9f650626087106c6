// Where a text stands: rolled back as if it had never been, kept apart from others, ended when it must.
#include <new>
#include <utility>

#include "patchbay/sdk/philox.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::matcher_test {
namespace {

TEST(Refusals, SayByCodeWhatIsWrongAndWhatIsNotSupported) {
    const std::pair<StructuredOutputs, StatusCode> cases[] = {
        {regex("a("), StatusCode::kInvalid},
        {regex(std::string(2, '\xFF')), StatusCode::kInvalid},
        {regex(R"((a)\1)"), StatusCode::kUnsupported},
        {ebnf("root ::= other"), StatusCode::kInvalid},
        {ebnf("root ::= <token>"), StatusCode::kUnsupported},
        {ebnf("start: /a/x"), StatusCode::kUnsupported},
        {ebnf("root ::= root"), StatusCode::kInvalid},
        {json("{"), StatusCode::kInvalid},
        {json(R"({"type": "rhyme"})"), StatusCode::kInvalid},
        {json(R"({"minimum": "none"})"), StatusCode::kInvalid},
        {json(R"({"$ref": "#/nowhere"})"), StatusCode::kInvalid},
        {json(R"({"$ref": "http://a.b/c"})"), StatusCode::kUnsupported},
        {{.structural_tag = "{}"}, StatusCode::kInvalid},
        {json(R"({"not": {"const": [1]}, "type": "array"})"), StatusCode::kUnsupported},
        {{.choice = {""}}, StatusCode::kInvalid},
        {{}, StatusCode::kInvalid}};
    for (const auto& [asked, code] : cases) {
        const auto made = compile(asked);
        ASSERT_FALSE(made) << asked.json.value_or(asked.regex.value_or(asked.grammar.value_or("")));
        EXPECT_EQ(made.code(), code) << made.error();
    }
}

TEST(Matchers, RollBackToWhatAReplayReaches) {
    const auto grammar = compiled({.json_object = true}, small());
    for (uint64_t seed = 0; seed < 50; ++seed) {
        const auto tokens = draw(grammar, seed, 30).tokens;
        Matcher m(grammar);
        size_t at = 0;
        for (uint64_t n = 0; n < 60; ++n) { // forth and back
            const auto bits = patchbay::draw(seed, n, Stream::kSample, 3);
            if (bits[0] % 3 != 0 && at < tokens.size()) {
                ASSERT_TRUE(*m.advance(tokens[at++]));
            } else {
                const size_t back = std::min<size_t>(bits[1] % 4, at);
                m.roll_back(back);
                at -= back;
            }
            Matcher replay(grammar);
            for (size_t i = 0; i < at; ++i) ASSERT_TRUE(*replay.advance(tokens[i]));
            ASSERT_EQ(m.length(), at);
            ASSERT_EQ(m.complete(), replay.complete());
            ASSERT_EQ(allowed(m, *small()), allowed(replay, *small()));
        }
    }
}

TEST(Matchers, StayWhereTheyAreWhenATokenIsRefused) {
    const auto grammar = compiled(regex("ab+"));
    Matcher m(grammar);
    EXPECT_FALSE(*m.advance('b'));
    EXPECT_TRUE(*m.advance('a'));
    EXPECT_FALSE(*m.advance('a'));
    EXPECT_FALSE(*m.advance(-1));
    EXPECT_FALSE(*m.advance(256));
    EXPECT_FALSE(m.complete());
    EXPECT_TRUE(*m.advance('b'));
    EXPECT_TRUE(m.complete());
    EXPECT_FALSE(m.finished()); // more b may come
    EXPECT_EQ(m.length(), 2u);
}

TEST(Matchers, AreFinishedWhereNothingCanFollow) {
    Matcher m(compiled({.choice = {"yes", "yes!"}}));
    for (const char c : std::string("yes")) EXPECT_TRUE(*m.advance(c));
    EXPECT_TRUE(m.complete());
    EXPECT_FALSE(m.finished());
    EXPECT_TRUE(*m.advance('!'));
    EXPECT_TRUE(m.finished());
    EXPECT_TRUE(ids_of(allowed(m, *bytes_only())).empty());
}

TEST(Matchers, GoOnWhenTheMachineOfTheirGrammarIsExchanged) {
    // Each round nests in another way, so that the machine outgrows its limit, while the others wait in the middle.
    const auto grammar = compiled(ebnf(R"x(root ::= ("(" root ")" | "[" root "]" | "x")+)x"));
    Matcher waiting(grammar);
    for (const char c : std::string("([(x[")) ASSERT_TRUE(*waiting.advance(c));
    uint64_t max_bytes = 0;
    for (uint64_t round = 0; round < 40; ++round) {
        Matcher m(grammar);
        std::string closing;
        for (uint64_t i = 0; i < 20'000; ++i) {
            const bool round_one = patchbay::draw(round, i, Stream::kSample, 0)[0] % 2;
            ASSERT_TRUE(*m.advance(round_one ? '(' : '['));
            closing += round_one ? ')' : ']';
        }
        ASSERT_TRUE(*m.advance('x'));
        for (size_t i = 0; i < closing.size(); ++i) ASSERT_TRUE(*m.advance(closing[closing.size() - 1 - i]));
        ASSERT_TRUE(m.complete());
        max_bytes = std::max(max_bytes, grammar->bytes());
    }
    EXPECT_GT(max_bytes, Grammar::kMaxMachineBytes / 10 * 9);
    EXPECT_LT(max_bytes, 2 * Grammar::kMaxMachineBytes);
    for (const char c : std::string("x])")) ASSERT_TRUE(*waiting.advance(c));
    EXPECT_FALSE(*waiting.advance(')'));
    EXPECT_TRUE(*waiting.advance(']'));
    waiting.roll_back(5);
    EXPECT_TRUE(*waiting.advance('['));
    EXPECT_EQ(waiting.length(), 5u);
}

TEST(Matchers, FailWhereATextNestsTooDeep) {
    Matcher m(compiled(ebnf(R"x(root ::= "(" root ")" | "x")x")));
    Result<bool> last = true;
    for (uint32_t i = 0; i <= Stacks::kMaxDepth && last; ++i) last = m.advance('(');
    ASSERT_FALSE(last);
    EXPECT_EQ(last.error(), "the text nests deeper than 100000");
}

TEST(Matchers, ReadTheFirstTokenAsTheTextShowsIt) {
    // "▁a" is " a" inside a text, and "a" at its begin.
    const auto v = std::make_shared<const Vocabulary>(std::vector<std::string>{" a", "a", " ", ""},
                                                      std::vector<std::string>{"a", "a", "", ""});
    Matcher m(compiled(regex("a a"), v));
    EXPECT_EQ(ids_of(allowed(m, *v)), (std::vector<TokenId>{0, 1})); // a space alone would not be seen
    EXPECT_TRUE(*m.advance(0));
    EXPECT_EQ(ids_of(allowed(m, *v)), (std::vector<TokenId>{0, 2}));
    EXPECT_TRUE(*m.advance(0));
    EXPECT_TRUE(m.finished());
}

TEST(GrammarCache, CompilesOnceWhatIsAskedForAgainAndForgetsTheOldest) {
    RealClock clock;
    int made = 0;
    GrammarCache cache(
        [&] {
            made += 1;
            return bytes_only();
        },
        clock);
    const auto first = cache.get(regex("a+"));
    const auto again = cache.get(regex("a+"));
    ASSERT_TRUE(first && again);
    EXPECT_EQ(*first, *again);
    EXPECT_NE(*first, *cache.get(ebnf("root ::= \"a\"+")));
    EXPECT_NE(*cache.get({.json = "{}"}), *cache.get({.json = "{}", .disable_any_whitespace = true}));
    EXPECT_NE(*cache.get({.choice = {"ab", "c"}}), *cache.get({.choice = {"a", "bc"}}));
    EXPECT_FALSE(cache.get(regex("(")));
    EXPECT_FALSE(cache.get(regex("(")));
    const auto counts = cache.counts();
    EXPECT_EQ(counts.compiled, 6u);
    EXPECT_EQ(counts.cached, 1u);
    EXPECT_EQ(counts.refused, 2u);
    EXPECT_EQ(made, 1);
    for (size_t i = 0; i < GrammarCache::kMaxGrammars; ++i) (void)cache.get(regex("b" + std::to_string(i)));
    EXPECT_NE(*first, *cache.get(regex("a+")));
}

TEST(GrammarCache, ForgetsWhatTakesTooMuchTogether) {
    RealClock clock;
    const auto word = [](int i) { return regex(std::to_string(10 + i) + "[a-z]{40}"); };
    GrammarCache all(bytes_only, clock);
    const uint64_t one = (*all.get(word(0)))->bytes();
    GrammarCache cache(bytes_only, clock, 7 * one / 2);
    std::vector<std::shared_ptr<Grammar>> made;
    for (int i = 0; i < 4; ++i) made.push_back(*cache.get(word(i)));
    for (int i : {1, 2, 3}) EXPECT_EQ(*cache.get(word(i)), made[static_cast<size_t>(i)]) << i;
    EXPECT_NE(*cache.get(word(0)), made[0]) << "the one that was not used for the longest time";
    EXPECT_EQ(cache.counts().compiled, 5u);
    GrammarCache none(bytes_only, clock, 0);
    const auto last = *none.get(word(0));
    EXPECT_EQ(*none.get(word(0)), last) << "the last one stays";
    // One that grows while it is used.
    const auto nested = ebnf(R"x(root ::= "(" root ")" | "x")x");
    GrammarCache small(bytes_only, clock, 100 * one);
    const auto first = *small.get(word(0)), growing = *small.get(nested);
    EXPECT_EQ(*small.get(word(0)), first);
    Matcher m(growing);
    while (growing->bytes() < 101 * one) ASSERT_TRUE(*m.advance('('));
    EXPECT_EQ(*small.get(nested), growing);
    EXPECT_NE(*small.get(word(0)), first);
}

TEST(GrammarCache, TriesAgainWhatFailedForWantOfMemory) {
    RealClock clock;
    bool first = true;
    GrammarCache cache(
        [&] {
            if (std::exchange(first, false)) throw std::bad_alloc();
            return bytes_only();
        },
        clock);
    const auto failed = cache.get(regex("a"));
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().find("cannot be compiled"), std::string::npos) << failed.error();
    EXPECT_TRUE(cache.get(regex("a")));
}

TEST(GrammarCache, WantsExactlyOneKindOfStructure) {
    RealClock clock;
    GrammarCache cache(bytes_only, clock);
    const auto none = cache.get({});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error(),
              "got 0 of json, regex, choice, grammar, structural_tag and json_object, expected exactly one");
    EXPECT_FALSE(cache.get({.regex = "a", .json_object = true}));
}

}  // namespace
}  // namespace patchbay::grammar::testing::matcher_test
