// Rank 0 of two over a rank that a test plays: what the other one is sent, and what becomes of a step in which one of
// them fails.
#include <gmock/gmock.h>

#include "execution/local_executor.hpp"
#include "execution/pass_stats.hpp"
#include "unit/execution/other_rank.hpp"
#include "unit/execution/played_step.hpp"

namespace patchbay::execution::testing::ranked_executor_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Slot = parallel::RankSwap::Slot;
using Verb = parallel::RankSwap::Verb;

class AgreesAtOnce final : public runner::Ranks { // what the runner asks while it is made
  public:
    const pb_group& wire() const override { return wire_; }
    void watch(std::function<void()>) override {}
    Result<uint32_t> agree_blocks(uint32_t here) override { return here; }

  private:
    pb_group wire_{sizeof(pb_group), 0, 2, 0, "127.0.0.1", nullptr, nullptr, nullptr};
};

struct Bench {
    Bench() {
        played.fake->calls.clear();
        device = played.fake;
        model = played.computed;
        part = std::make_unique<RankedExecutor>(std::move(played.runner), std::move(other.group), played.clock);
    }
    Result<StepOutput> compute(PlayedStep& step, bool is_redone_if_it_fails = false) {
        StepInput in = step.input();
        in.is_redone_if_it_fails = is_redone_if_it_fails;
        PB_CHECK(part->submit(in));
        return part->wait(step.paths());
    }

    AgreesAtOnce ranks;
    PlayedRunner played{true, &ranks};
    OtherRank other;
    FakeDevice* device;
    FakeModel* model;
    std::unique_ptr<RankedExecutor> part;
};

TEST(RankedExecutor, TheOtherRankIsSentWhatThisOneComputes) {
    Bench b;
    PlayedStep step;
    step.copy({3, 2});
    step.add(1, {3, 1, 2}).add(2, {5});
    const auto out = b.compute(step, true); // which waits for the other rank
    ASSERT_TRUE(out) << out.error();
    EXPECT_THAT(out->logits, SizeIs(2 * FakeModel::kVocab)) << "this one alone samples";
    const auto sent = b.other.steps();
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_THAT(sent[0].tokens, ElementsAre(ElementsAre(3, 1, 2), ElementsAre(5)));
    EXPECT_THAT(sent[0].copies, ElementsAre(kv::PageCopy{3, 2}));
    EXPECT_GT(b.part->stats().broadcast_bytes, 4 * sizeof(int32_t));
}

TEST(RankedExecutor, NoStepIsInFlight) {
    Bench b;
    EXPECT_NE(b.part->sync_reason(), "");
}

TEST(RankedExecutor, AStepThatIsRedoneLeavesAllRanksReadyForTheNext) {
    for (const bool is_the_other : {true, false}) {
        SCOPED_TRACE(is_the_other ? "the other rank fails" : "this rank fails");
        Bench b;
        PlayedStep step;
        step.add(1, {3});
        ASSERT_TRUE(b.other.hub().set(parallel::device_key(0, "id"), "of the first connection"));
        if (is_the_other) b.other.fail_next_step("it cannot add");
        else b.model->fault = "it cannot multiply";
        const auto failed = b.compute(step, true);
        ASSERT_FALSE(failed);
        EXPECT_THAT(failed.error(), HasSubstr(is_the_other ? "it cannot add" : "it cannot multiply"));
        if (is_the_other) {
            EXPECT_EQ(failed.code(), StatusCode::kExhausted);
        }
        EXPECT_EQ(b.other.reconnects(), 1);
        EXPECT_TRUE(b.other.hub().set(parallel::device_key(0, "id"), "")) << "it was forgotten";
        EXPECT_THAT(std::vector(b.device->calls.end() - 2, b.device->calls.end()),
                    ElementsAre("disconnect", "connect"));
        b.part->cancel();
        const auto again = b.compute(step, true);
        ASSERT_TRUE(again) << again.error();
        EXPECT_THAT(again->logits, SizeIs(FakeModel::kVocab));
        EXPECT_THAT(b.other.steps(), SizeIs(2));
    }
}

// ---- exchanges ----

std::unique_ptr<host::Component> other_attention() {
    return runner::testing::view_of<host::Attention, pb_attention>(runner::testing::kFakePages).component;
}

TEST(RankedAttention, IsExchangedOnAllRanksOrNone) {
    Bench b;
    AttentionExchange& part = *b.part->attention();
    const auto first = part.give();
    auto next = other_attention(), refused = other_attention();
    ASSERT_TRUE(part.check(*next));
    EXPECT_TRUE(part.use(*next));
    EXPECT_EQ(&b.part->runner().attention().component(), next.get());
    part.forget();

    b.other.refuse_swaps("no room there");
    const auto checked = part.check(*refused);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error(), HasSubstr("no room there"));
    EXPECT_EQ(checked.code(), StatusCode::kUnsupported);
    EXPECT_THAT(part.use(*refused).error(), HasSubstr("no room there"));
    EXPECT_EQ(&b.part->runner().attention().component(), next.get()) << "this rank keeps what the others have";
    b.other.refuse_swaps("");

    const auto sent = b.other.swaps();
    ASSERT_GE(sent.size(), 6u);
    const std::pair<Verb, uint64_t> expected[] = {{Verb::kPrepare, 1}, {Verb::kUse, 1},     {Verb::kForget, 0},
                                                  {Verb::kPrepare, 2}, {Verb::kUse, 2},     {Verb::kUse, 1}};
    for (size_t i = 0; i < std::size(expected); ++i) {
        EXPECT_EQ(sent[i].slot, Slot::kAttention);
        EXPECT_EQ(sent[i].verb, expected[i].first) << i;
        EXPECT_EQ(sent[i].candidate, expected[i].second) << i;
    }
    EXPECT_EQ(sent[0].plugin, "fake");
    part.end();
}

TEST(RankedAttention, ACandidateThatGoesIsDroppedOnTheOtherRanks) {
    Bench b;
    AttentionExchange& part = *b.part->attention();
    ASSERT_TRUE(part.check(*other_attention())); // and it goes
    auto next = other_attention();
    ASSERT_TRUE(part.check(*next)); // is answered after that
    const auto sent = b.other.swaps();
    ASSERT_THAT(sent, SizeIs(3));
    EXPECT_EQ(sent[1].verb, Verb::kDrop);
    EXPECT_EQ(sent[1].candidate, 1u);
    EXPECT_EQ(sent[2].candidate, 2u);
}

// As where an engine ends while one is on probation whose predecessor was a candidate too.
TEST(RankedAttention, TheOtherRanksForgetTheOneThatIsBoundBesideBeforeItGoes) {
    Bench b;
    AttentionExchange& part = *b.part->attention();
    const auto first = part.give();
    auto before = other_attention(), now = other_attention(), next = other_attention();
    ASSERT_TRUE(part.check(*before));
    ASSERT_TRUE(part.use(*before));
    part.forget();
    ASSERT_TRUE(part.check(*now));
    ASSERT_TRUE(part.use(*now));
    part.end();
    before.reset();
    ASSERT_TRUE(part.check(*next)); // is answered after that
    const auto sent = b.other.swaps();
    ASSERT_THAT(sent, SizeIs(8));
    EXPECT_EQ(sent[5].verb, Verb::kForget);
    EXPECT_EQ(sent[6].verb, Verb::kDrop);
    EXPECT_EQ(sent[6].candidate, 1u);
}

TEST(RankedAttention, OneThatDoesNotFitHereIsNotSent) {
    Bench b;
    const auto larger = other_attention();
    runner::testing::played<runner::testing::FakePages>(*larger).page_bytes = 1 << 20;
    EXPECT_FALSE(b.part->attention()->check(*larger));
    EXPECT_THAT(b.other.swaps(), IsEmpty());
}

ModelChoice fake_choice() {
    return {.config = {{"architectures.0", "Fake"}},
            .source = weights::WeightSource::dummy(1),
            .architecture = "Fake",
            .plugin = "fake",
            .weights = {},
            .kv_dtypes = {}};
}

std::unique_ptr<host::Component> fake_model() {
    return runner::testing::view_of<host::Model, pb_model>(runner::testing::kFakeModel).component;
}

TEST(RankedModel, ThatFailsHereIsLoadedNoFurtherOnTheOtherRanks) {
    Bench b;
    b.other.load_until_dropped();
    const auto larger = fake_model();
    runner::testing::played<FakeModel>(*larger).layers.resize(2, FakeModel::layer());
    const auto run = [](const std::function<void()>&) { return false; };
    EXPECT_FALSE(b.part->model()->load(*larger, fake_choice(), {"/weights", "abc"}, run));
    const auto sent = b.other.swaps();
    ASSERT_THAT(sent, SizeIs(2));
    EXPECT_EQ(sent[1].verb, Verb::kDrop);
    EXPECT_EQ(sent[1].candidate, sent[0].candidate);
}

TEST(RankedModel, IsExchangedOnAllRanksOrNone) {
    Bench b;
    ModelExchange& part = *b.part->model();
    const auto run = [](const std::function<void()>& f) {
        f();
        return true;
    };
    const ModelChoice choice = fake_choice();
    const auto first = part.give();
    const auto next = fake_model(), refused = fake_model();
    auto weights = part.load(*next, choice, {"/weights", "abc"}, run);
    ASSERT_TRUE(weights) << weights.error();
    ASSERT_TRUE(part.use(*next, **weights));
    EXPECT_EQ(&b.part->runner().model().component(), next.get());

    b.other.refuse_swaps("these are others");
    EXPECT_THAT(part.load(*refused, choice, {"/weights", "abc"}, run).error(), HasSubstr("these are others"));
    EXPECT_FALSE(part.use(*first, **weights));
    EXPECT_EQ(&b.part->runner().model().component(), next.get());
    b.other.refuse_swaps("");
    ASSERT_TRUE(part.use(*first, **weights)) << "what was in use comes back";
    part.release(**weights);

    const auto sent = b.other.swaps();
    ASSERT_GE(sent.size(), 7u);
    const std::pair<Verb, uint64_t> expected[] = {{Verb::kPrepare, 1}, {Verb::kUse, 1}, {Verb::kPrepare, 2},
                                                  {Verb::kDrop, 2},    {Verb::kUse, 0}, {Verb::kUse, 1},
                                                  {Verb::kUse, 0}};
    for (size_t i = 0; i < std::size(expected); ++i) {
        EXPECT_EQ(sent[i].slot, Slot::kModel);
        EXPECT_EQ(sent[i].verb, expected[i].first) << i;
        EXPECT_EQ(sent[i].candidate, expected[i].second) << i;
    }
    EXPECT_EQ(sent[0].weights, "/weights");
    EXPECT_EQ(sent[0].identity, "abc");
}

}  // namespace
}  // namespace patchbay::execution::testing::ranked_executor_test
