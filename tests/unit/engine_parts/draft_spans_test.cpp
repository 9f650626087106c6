// What a pass of a draft model computes, and what it knows afterwards, over sequences without an engine.
#include "engine/speculation/draft_spans.hpp"

#include <gmock/gmock.h>

#include "engine/speculation/draft_kv.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::draft_spans_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two sequences of 6 and 9 tokens, of which the target has computed all but the newest.
struct Bench {
    explicit Bench(uint32_t layers = 2, std::optional<uint32_t> head_depth = {}) {
        form.facts.layer_count = layers;
        form.facts.max_position = 100;
        form.head_depth = head_depth;
        for (const auto& s : {a.get(), b.get()}) {
            s->tokens.reserve(32);
            s->computed = static_cast<uint32_t>(s->tokens.size()) - 1;
        }
    }
    void begin() {
        turns.begin(std::vector<DraftTurns::Row>{{a.get(), 4}}, {a.get(), b.get()});
        spans.begin(turns.all());
    }
    void ask(std::vector<TokenId> drafts) { // a row of a
        const pb_runner_row row{a->id, drafts.data(), static_cast<uint32_t>(drafts.size()), 0};
        pb_runner_batch batch = patchbay::sized<pb_runner_batch>();
        batch.row_count = 1;
        batch.row_stride = sizeof row;
        batch.rows = &row;
        turns.ask(batch);
        spans.plan(turns);
    }
    std::vector<std::vector<uint32_t>> planned() const { // id, begin, end, asked
        std::vector<std::vector<uint32_t>> out;
        for (const DraftSpans::Span& s : spans.all())
            out.push_back({static_cast<uint32_t>(s.sequence->id), s.begin, s.end, s.asked.has_value()});
        return out;
    }

    DraftForm form;
    DraftKvTable kv{true};
    DraftTurns turns;
    std::unique_ptr<Sequence> a = sequence(1, 6), b = sequence(2, 9);
    DraftSpans spans{form, kv, 20};
};

TEST(DraftTurns, PutDraftsAfterTheTokensOfThoseThatAreAsked) {
    Bench t;
    t.begin();
    EXPECT_EQ(t.turns.max_drafts(1), 4u);
    EXPECT_EQ(t.turns.max_drafts(2), std::nullopt) << "it is not drafted for";
    t.ask({7, 8});
    EXPECT_EQ(t.a->drafts, 2u);
    EXPECT_EQ(t.a->tokens.back(), 8);
    EXPECT_EQ(t.turns.asked(*t.a), 0u);
    EXPECT_EQ(t.turns.asked(*t.b), std::nullopt);
    t.turns.drop_drafts();
    EXPECT_EQ(t.a->tokens.size(), 6u);
    t.turns.ask_nothing();
    EXPECT_EQ(t.turns.asked(*t.a), std::nullopt);
}

TEST(DraftSpans, ComputeOnceWhatTheTargetHasAndThenOnlyWhatIsNew) {
    Bench t;
    t.begin();
    EXPECT_FALSE(t.spans.followed());
    t.ask({});
    EXPECT_THAT(t.planned(), ElementsAre(ElementsAre(1, 0, 6, 1), ElementsAre(2, 0, 8, 0)));
    EXPECT_TRUE(t.spans.followed());
    t.spans.passed(true, 0);
    t.ask({7});
    EXPECT_THAT(t.planned(), ElementsAre(ElementsAre(1, 6, 7, 1))) << "the other one has nothing new";
    t.spans.passed(true, 0);
    EXPECT_THAT(t.kv.of(*t.a).ahead, ElementsAre(7));
    t.ask({9});
    EXPECT_THAT(t.planned(), ElementsAre(ElementsAre(1, 6, 7, 1))) << "another draft";
}

TEST(DraftSpans, KnowOfAGuessThatCameTrue) {
    Bench t;
    t.kv.of(*t.a) = {.computed = 6, .ahead = {7, 8}, .hidden = {}, .made = {}};
    t.a->tokens.push_back(7);
    t.a->tokens.push_back(9); // the second one was wrong
    t.begin();
    t.ask({});
    EXPECT_THAT(t.planned()[0], ElementsAre(1, 7, 8, 1));
}

TEST(DraftSpans, StayWithinAPass) {
    Bench t;
    DraftSpans few(t.form, t.kv, 8);
    t.begin();
    few.begin(t.turns.all());
    few.plan(t.turns);
    ASSERT_EQ(few.all().size(), 2u);
    EXPECT_EQ(few.all()[0].end, 5u);
    EXPECT_EQ(few.all()[1].end, 3u) << "the rest comes later";
}

TEST(DraftSpans, DoNotTrustPagesOfAPassThatFailed) {
    Bench t;
    t.begin();
    t.ask({});
    t.spans.passed(false, 0);
    EXPECT_TRUE(t.kv.of(*t.a).lost);
    t.ask({});
    EXPECT_THAT(t.planned(), IsEmpty());
}

TEST(DraftSpans, OfAHeadNeedTheHiddenStatesOfTheStep) {
    Bench t(1, 3);
    t.kv.computes(*t.a, {0, 5, 40}); // the target computed all of it in this step
    t.kv.computes(*t.b, {4, 4, 45}); // and only the end of this one
    t.begin();
    t.ask({});
    EXPECT_THAT(t.planned(), ElementsAre(ElementsAre(1, 0, 5, 1)));
    EXPECT_TRUE(t.kv.of(*t.b).lost) << "what it missed does not come back";
    t.spans.passed(true, 60);
    EXPECT_THAT(t.kv.of(*t.a).made, ElementsAre(60)) << "where it kept the hidden state of the row";
    t.spans.end(t.turns.all());
    EXPECT_EQ(t.kv.of(*t.a).hidden.count, 0u);
}

TEST(DraftSpans, OfAHeadWithoutLayersGoFromTheNewestHiddenState) {
    Bench t(0, 2);
    t.kv.computes(*t.a, {4, 1, 40});
    t.begin();
    EXPECT_TRUE(t.spans.followed()) << "there is nothing to follow";
    t.ask({7});
    EXPECT_THAT(t.planned(), ElementsAre(ElementsAre(1, 4, 5, 1)));
    t.ask({7, 8});
    EXPECT_THAT(t.planned(), IsEmpty()) << "it goes no deeper";
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_spans_test
