// Grammars over the rows of a sequence: over a vocabulary of nine tokens, so that each mask can be written down.
#include "engine/sampling/structured_output.hpp"

#include <gmock/gmock.h>

#include "engine/loop/step_context.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::structured_output_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum Token : TokenId { kEnd, kA, kB, kAb, kC, kSpecial, kX, kOther = 33, kDigit = 34 };
constexpr uint32_t kVocab = 40; // of the model: the last ones have no text
constexpr size_t kWords = 2;

class FakeTokenizer final : public text::Tokenizer {
  public:
    std::vector<TokenId> encode(std::string_view) const override { return {}; }
    std::string_view token_bytes(TokenId t) const override {
        switch (t) {
            case kA: return "a";
            case kB: return "b";
            case kAb: return "ab";
            case kC: return "c";
            case kX: return "x";
            case kOther: return "ba";
            case kDigit: return "1";
            default: return {};
        }
    }
    bool is_special(TokenId t) const override { return t == kEnd || t == kSpecial; }
    uint32_t vocab_size() const override { return kDigit + 1; }
    std::optional<TokenId> eos() const override { return kEnd; }
    std::optional<TokenId> id_of(std::string_view) const override { return {}; }
};

MaskWords mask_of(const std::vector<TokenId>& allowed) {
    MaskWords out(kWords, 0);
    for (const TokenId t : allowed) out[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
    return out;
}

struct Bench {
    std::shared_ptr<grammar::Grammar> compiled(const std::string& regex) {
        auto out = part.compile({.regex = regex});
        if (!out) throw std::runtime_error(out.error());
        return *out;
    }
    // One whose output has this form, and its drafts after the prompt.
    Sequence& add(const std::string& regex, const std::vector<TokenId>& drafts = {}, SamplingParams p = {}) {
        made.push_back(sequence(made.size() + 1, 2, std::move(p)));
        Sequence& s = *made.back();
        s.tokens.insert(s.tokens.end(), drafts.begin(), drafts.end());
        s.drafts = static_cast<uint32_t>(drafts.size());
        part.add(s, compiled(regex));
        return s;
    }
    // What each row allows, from the one after so many drafts on; an empty list: the row was left as it is.
    std::vector<std::vector<TokenId>> allowed(const Sequence& s, uint32_t after = 0) {
        rows.resize(s.drafts + 1 - after);
        memory.clear();
        none.clear();
        part.mask({s, s.tokens, s.confirmed(), after, 100, rows}, memory, none);
        std::vector<std::vector<TokenId>> out;
        for (const pb_sample_row& row : rows) {
            out.emplace_back();
            for (TokenId t = 0; row.allowed && t < static_cast<TokenId>(32 * kWords); ++t)
                if (row.allowed[static_cast<size_t>(t) / 32] >> (t % 32) & 1) out.back().push_back(t);
        }
        return out;
    }
    // The output goes on with these.
    void take(Sequence& s, const std::vector<TokenId>& tokens) {
        s.drop_drafts();
        for (const TokenId t : tokens) {
            const auto taken = part.accept(s, t, "fake");
            ASSERT_TRUE(taken) << taken.error();
            s.tokens.push_back(t);
        }
    }

    std::vector<TokenId> eos = {kEnd};
    VirtualClock clock;
    StepContext context;
    StructuredOutput part{std::make_shared<FakeTokenizer>(), eos, kVocab, clock, context};
    std::vector<std::unique_ptr<Sequence>> made;
    std::vector<pb_sample_row> rows;
    MaskWords memory;
    RowConstraint::Unsatisfiable none;
};

TEST(StructuredOutput, NeedsATokenizer) {
    Bench b;
    StructuredOutput without(nullptr, b.eos, kVocab, b.clock, b.context);
    const auto compiled = without.compile({.regex = "a"});
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error(), "structured_outputs need a tokenizer");
    EXPECT_EQ(compiled.code(), StatusCode::kUnsupported);
    StepReport r;
    without.report_compiled(r);
    EXPECT_EQ(r.grammars.refused, 0u);
}

TEST(StructuredOutput, TakesAGrammarThatItCompiledBeforeAndNoOther) {
    Bench b, other;
    const auto here = b.part.compile({.regex = "a"}), there = other.part.compile({.regex = "a"});
    ASSERT_TRUE(here && there);
    for (int i = 0; i < 100; ++i) (void)b.part.compile({.regex = "b" + std::to_string(i)}); // those are kept now
    StepReport before, after;
    b.part.report_compiled(before);
    EXPECT_EQ(*b.part.compile({.regex = "a"}, *here), *here);
    b.part.report_compiled(after);
    EXPECT_EQ(after.grammars.compiled, 0u);
    const auto anew = b.part.compile({.regex = "a"}, *there); // of another vocabulary
    ASSERT_TRUE(anew) << anew.error();
    EXPECT_NE(*anew, *there);
}

TEST(StructuredOutput, AGrammarThatDoesNotCompileIsTheRequestsFault) {
    Bench b;
    const auto compiled = b.part.compile({.regex = "("});
    ASSERT_FALSE(compiled);
    EXPECT_THAT(compiled.error(), ::testing::StartsWith("structured_outputs: regex"));
    EXPECT_EQ(compiled.code(), StatusCode::kInvalid);
}

TEST(StructuredOutput, EachRowAllowsWhatMayFollowTheDraftsBeforeIt) {
    Bench b;
    const Sequence& s = b.add("(ab)+c", {kAb, kA, kB, kC});
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kA, kAb), ElementsAre(kA, kAb, kC), ElementsAre(kB, kOther),
                                          ElementsAre(kA, kAb, kC), ElementsAre(kEnd)));
    EXPECT_THAT(b.none, IsEmpty());
    EXPECT_EQ(b.context.report.grammars.masks, 5u);
    EXPECT_EQ(b.allowed(s)[0], (std::vector<TokenId>{kA, kAb})) << "the drafts are not part of the output yet";
}

TEST(StructuredOutput, RowsGoOnFromTheOutput) {
    Bench b;
    Sequence& s = b.add("a(bc)*");
    b.take(s, {kAb});
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kC)));
    b.take(s, {kC});
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kEnd, kB)));
}

TEST(StructuredOutput, RowsAfterADraftThatIsNotAllowedAreLeftAsTheyAre) {
    Bench b;
    const Sequence& s = b.add("(ab)+c", {kAb, kX, kA});
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kA, kAb), ElementsAre(kA, kAb, kC), IsEmpty(), IsEmpty()));
    EXPECT_THAT(b.none, IsEmpty());
    EXPECT_EQ(b.context.report.grammars.masks, 2u);
    EXPECT_EQ(b.allowed(s)[0], (std::vector<TokenId>{kA, kAb}));
}

TEST(StructuredOutput, AFurtherPathHasRowsOnlyAfterWhatItShares) {
    Bench b;
    const Sequence& s = b.add("(ab)+c", {kAb, kA, kB});
    EXPECT_THAT(b.allowed(s, 2), ElementsAre(ElementsAre(kB, kOther), ElementsAre(kA, kAb, kC)));
    EXPECT_EQ(b.context.report.grammars.masks, 2u);
}

TEST(StructuredOutput, NarrowsWhatOtherRulesHaveLeft) {
    Bench b;
    const Sequence& s = b.add("(ab)+c", {kAb});
    b.rows.resize(2);
    const MaskWords left = mask_of({kA, kC, kX});
    for (pb_sample_row& row : b.rows) row.allowed = left.data();
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kA), ElementsAre(kA, kC)));
    EXPECT_EQ(left, mask_of({kA, kC, kX})) << "which others read";
}

TEST(StructuredOutput, ARowWithNoTokenLeftSaysWhy) {
    Bench b;
    const Sequence& s = b.add("(ab)+c", {kAb});
    b.rows.resize(2);
    const MaskWords left = mask_of({kC});
    for (pb_sample_row& row : b.rows) row.allowed = left.data();
    EXPECT_THAT(b.allowed(s), ElementsAre(IsEmpty(), ElementsAre(kC)));
    ASSERT_EQ(b.none.size(), 1u);
    EXPECT_EQ(b.none[0].first, 100u) << "of the step's rows";
    EXPECT_EQ(b.none[0].second,
              "structured_outputs: no token that allowed_token_ids, bad_words and min_tokens leave goes on with the "
              "structured output");
    b.rows.clear();
    const Sequence& other = b.add("abz", {kAb});
    EXPECT_THAT(b.allowed(other), ElementsAre(ElementsAre(kA, kAb), IsEmpty()));
    ASSERT_EQ(b.none.size(), 1u);
    EXPECT_EQ(b.none[0].first, 101u);
    EXPECT_EQ(b.none[0].second, "structured_outputs: no token of the vocabulary goes on with the structured output");
}

TEST(StructuredOutput, TakesOnlyTokensThatItAllows) {
    Bench b;
    Sequence& s = b.add("abc");
    EXPECT_EQ(b.part.accept(s, kX, "greedy").error(),
              "structured_outputs: greedy gave token 6, which is not allowed");
    EXPECT_FALSE(b.part.accept(s, kEnd, "greedy")) << "the text is not complete";
    b.take(s, {kA});
    EXPECT_FALSE(b.part.accept(s, kA, "greedy"));
    b.take(s, {kB, kC});
    EXPECT_TRUE(b.part.accept(s, kEnd, "greedy"));
}

TEST(StructuredOutput, IsCompleteWhereNothingMayFollow) {
    Bench b;
    Sequence &fixed = b.add("ab"), &open = b.add("(ab)+");
    b.take(fixed, {kA});
    EXPECT_FALSE(b.part.is_complete(fixed));
    b.take(fixed, {kB});
    EXPECT_TRUE(b.part.is_complete(fixed));
    b.take(open, {kAb});
    EXPECT_FALSE(b.part.is_complete(open)) << "it may end, and may go on";
}

// Of the request's stop tokens those without text end it like the model's own; the others are part of the text.
TEST(StructuredOutput, EndsByTokensWithoutText) {
    Bench b;
    SamplingParams p;
    p.stop_token_ids = {kSpecial, kC, -1, 4000};
    Sequence& s = b.add("ab", {}, p);
    b.take(s, {kAb});
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kEnd, kSpecial)));
    EXPECT_TRUE(b.part.accept(s, kSpecial, "fake"));
    EXPECT_FALSE(b.part.accept(s, kC, "fake"));
    p.ignore_eos = true;
    Sequence& ignores = b.add("ab", {}, p);
    b.take(ignores, {kAb});
    EXPECT_THAT(b.allowed(ignores), ElementsAre(ElementsAre(kSpecial)));
    EXPECT_FALSE(b.part.accept(ignores, kEnd, "fake"));
}

TEST(StructuredOutput, CountsTheDraftsThatItAllows) {
    Bench b;
    Sequence& s = b.add("(ab)+c");
    EXPECT_EQ(b.part.count_allowed(s, std::vector<TokenId>{kAb, kA, kB, kC}), 4u);
    EXPECT_EQ(b.part.count_allowed(s, std::vector<TokenId>{kAb, kX, kAb}), 1u);
    EXPECT_EQ(b.part.count_allowed(s, std::vector<TokenId>{kB}), 0u);
    EXPECT_EQ(b.part.count_allowed(s, {}), 0u);
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kA, kAb))) << "none of them is part of the output";
}

TEST(StructuredOutput, ASiblingGoesOnFromTheSameTextOnItsOwn) {
    Bench b;
    Sequence& s = b.add("(ab)+c");
    b.take(s, {kA});
    const auto sibling = sequence(50, 2), other = sequence(51, 2);
    EXPECT_FALSE(b.part.applies(*sibling));
    b.part.inherit(s, *sibling);
    EXPECT_TRUE(b.part.applies(*sibling));
    b.take(*sibling, {kB, kC});
    EXPECT_TRUE(b.part.is_complete(*sibling));
    EXPECT_THAT(b.allowed(*sibling), ElementsAre(ElementsAre(kEnd)));
    EXPECT_THAT(b.allowed(s), ElementsAre(ElementsAre(kB, kOther)));
    b.part.inherit(*other, *other);
    EXPECT_FALSE(b.part.applies(*other)) << "it has no form to give";
    b.part.erase(s);
    EXPECT_FALSE(b.part.applies(s));
    EXPECT_TRUE(b.part.applies(*sibling));
}

TEST(StructuredOutput, ItsNextTokenHangsOnTheOneBefore) {
    Bench b;
    EXPECT_EQ(b.add("ab").sampling.history_reason, "structured_output");
}

TEST(StructuredOutput, ReportsWhatWasCompiledSinceTheStepBefore) {
    Bench b;
    StepReport r;
    b.compiled("a");
    b.compiled("b");
    b.compiled("a");
    EXPECT_FALSE(b.part.compile({.regex = "("}));
    b.part.report_compiled(r);
    EXPECT_EQ(r.grammars.compiled, 2u);
    EXPECT_EQ(r.grammars.cached, 1u);
    EXPECT_EQ(r.grammars.refused, 1u);
    b.compiled("b");
    b.part.report_compiled(r);
    EXPECT_EQ(r.grammars.compiled, 0u);
    EXPECT_EQ(r.grammars.cached, 1u);
    EXPECT_EQ(r.grammars.refused, 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::structured_output_test
