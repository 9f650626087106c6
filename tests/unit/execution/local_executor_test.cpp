// Steps of a model on this rank: computed when they are submitted, or begun, and given back in their order.
#include "execution/local_executor.hpp"

#include <gmock/gmock.h>

#include "execution/pass_stats.hpp"
#include "unit/execution/played_step.hpp"

namespace patchbay::execution::testing::local_executor_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Bench {
    PlayedRunner played;
    std::unique_ptr<LocalExecutor> part = std::make_unique<LocalExecutor>(std::move(played.runner));
};

struct Timed { // a device that computes nothing: a step takes 1 µs, and two can be in flight
    Timed() : part(std::make_unique<LocalExecutor>(std::move(played.runner))) { played.fake->charged = 1000; }
    PlayedRunner played{false};
    std::unique_ptr<LocalExecutor> part;
};

std::vector<float> logits_of(int32_t token) {
    std::vector<float> out;
    for (uint32_t v = 0; v < FakeModel::kVocab; ++v) out.push_back(FakeModel::logit(token, v));
    return out;
}

TEST(LocalExecutor, AStepThatDoesNotOverlapIsComputedWhenItIsSubmitted) {
    Bench b;
    PlayedStep step;
    step.add(1, {3, 1, 2}).add(2, {5}).add(3, {4, 4}, 0);
    ASSERT_TRUE(b.part->submit(step.input()));
    EXPECT_EQ(b.played.computed->passes, 1u);
    const auto out = b.part->wait(step.paths());
    ASSERT_TRUE(out) << out.error();
    EXPECT_FALSE(out->is_sampled);
    std::vector<float> expected = logits_of(2), second = logits_of(5);
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(std::vector<float>(out->logits.begin(), out->logits.end()), expected);
    EXPECT_EQ(b.played.computed->passes, 1u);
}

TEST(LocalExecutor, HiddenStatesThatTheBatchWantsComeWithItsStep) {
    Bench b;
    EXPECT_EQ(b.part->hidden_size(), FakeModel::kHidden);
    PlayedStep step;
    step.add(1, {6, 2, 4}, 0);
    step.batch().want_hidden({1, 2});
    ASSERT_TRUE(b.part->submit(step.input()));
    const auto out = b.part->wait(step.paths());
    ASSERT_TRUE(out) << out.error();
    EXPECT_THAT(out->hidden, ElementsAre(1, 1, 2, 2));
    EXPECT_THAT(out->logits, IsEmpty());
}

TEST(LocalExecutor, WhatFailsIsTheStepAndTheNextOneIsComputed) {
    Bench b;
    PlayedStep step;
    step.add(1, {3});
    b.played.computed->fault = "it cannot multiply";
    EXPECT_THAT(b.part->submit(step.input()).error(), HasSubstr("it cannot multiply"));
    ASSERT_TRUE(b.part->submit(step.input()));
    EXPECT_THAT(b.part->wait(step.paths())->logits, SizeIs(FakeModel::kVocab));
}

TEST(LocalExecutor, WhatFailsBeforeTheModelIsAskedEndsTheDevicesStepToo) {
    Bench b;
    PlayedStep step;
    step.add(1, {3});
    const host::Component& attention = b.part->runner().attention().component();
    runner::testing::played<runner::testing::FakePages>(attention).fault = "it cannot plan";
    EXPECT_THAT(b.part->submit(step.input()).error(), HasSubstr("it cannot plan"));
    EXPECT_THAT(b.played.fake->calls, ElementsAre("begin", "end"));
    ASSERT_TRUE(b.part->submit(step.input()));
    EXPECT_THAT(b.part->wait(step.paths())->logits, SizeIs(FakeModel::kVocab));
}

TEST(LocalExecutor, ABatchWithoutTokensIsItsCopies) {
    Bench b;
    PlayedStep step;
    step.copy({1, 0});
    ASSERT_TRUE(b.part->submit(step.input()));
    ASSERT_TRUE(b.part->wait({}));
    EXPECT_EQ(b.played.computed->passes, 0u);
    EXPECT_THAT(b.played.fake->calls, ElementsAre("begin", "end"));
}

TEST(LocalExecutor, WhatWasCancelledIsNotGivenOut) {
    Bench b;
    PlayedStep lost, next;
    lost.add(1, {3});
    next.add(1, {5});
    ASSERT_TRUE(b.part->submit(lost.input()));
    b.part->cancel();
    ASSERT_TRUE(b.part->submit(next.input()));
    const auto out = b.part->wait(next.paths());
    EXPECT_EQ(std::vector<float>(out->logits.begin(), out->logits.end()), logits_of(5));
}

TEST(LocalExecutor, StepsAreInFlightWhereTheDeviceCanHaveThem) {
    Bench host; // whose memory is the host's
    EXPECT_EQ(host.part->sync_reason(), "device");
    Timed b;
    EXPECT_EQ(b.part->sync_reason(), "");
    PlayedStep first, second;
    first.add(1, {3});
    second.add(1, {4});
    ASSERT_TRUE(b.part->submit(first.overlapping()));
    ASSERT_TRUE(b.part->submit(second.overlapping()));
    EXPECT_EQ(b.played.clock.now_ns(), 0u) << "the host goes on meanwhile";
    EXPECT_TRUE(b.part->wait(first.paths())->is_sampled);
    EXPECT_EQ(b.played.clock.now_ns(), 1000u);
    ASSERT_TRUE(b.part->wait(second.paths()));
    EXPECT_EQ(b.played.clock.now_ns(), 2000u) << "one after the other";
}

TEST(LocalExecutor, WhatIsCancelledInFlightIsWaitedFor) {
    Timed b;
    PlayedStep step;
    step.add(1, {3});
    ASSERT_TRUE(b.part->submit(step.overlapping()));
    b.part->cancel();
    EXPECT_THAT(b.played.fake->calls, ElementsAre("begin", "submit", "wait"));
}

TEST(LocalExecutor, SaysWhatTheLatestPassTook) {
    Timed b;
    PlayedStep step;
    step.add(1, {3});
    ASSERT_TRUE(b.part->submit(step.input()));
    ASSERT_TRUE(b.part->wait(step.paths()));
    const PassStats stats = b.part->stats();
    EXPECT_EQ(stats.times.model_forward, 1000u);
    EXPECT_EQ(stats.graphs, 0u);
    EXPECT_EQ(stats.broadcast_bytes, 0u) << "there are no other ranks";
}

TEST(LocalExecutor, ItsModelAndAttentionCanBeExchangedAndThereIsNoDraftModel) {
    Bench b;
    EXPECT_EQ(b.part->tokens(), TokenSource::kModel);
    ASSERT_NE(b.part->model(), nullptr);
    ASSERT_NE(b.part->attention(), nullptr);
    EXPECT_EQ(b.part->drafts(), nullptr);
    EXPECT_EQ(b.part->attention()->layout(), b.part->runner().kv().layers().binding().layout_tag());
    const auto first = b.part->attention()->give();
    auto other = runner::testing::view_of<host::Attention, pb_attention>(runner::testing::kFakePages).component;
    ASSERT_TRUE(b.part->attention()->check(*other));
    EXPECT_TRUE(*b.part->attention()->use(*other)) << "its pages are alike";
    b.part->attention()->forget();
    runner::testing::played<runner::testing::FakePages>(*first).tag = "B";
    EXPECT_FALSE(*b.part->attention()->use(*first));
    EXPECT_EQ(b.part->attention()->layout(), "B");
    b.part->attention()->end();
}

// Of a runner of its own: an executor keeps it beside the target's.
TEST(LocalDraftPasses, ComputeAtOnceAndGiveLogits) {
    PlayedRunner draft;
    LocalDraftPasses part(*draft.runner);
    EXPECT_EQ(part.batch_form().block_size, PlayedRunner::kBlock);
    PlayedStep step;
    step.add(1, {2}).add(2, {7, 6});
    const auto out = part.compute(step.batch(), nullptr);
    ASSERT_TRUE(out) << out.error();
    EXPECT_FALSE(out->is_sampled);
    ASSERT_THAT(out->logits, SizeIs(2 * FakeModel::kVocab));
    EXPECT_EQ(out->logits[0], FakeModel::logit(2, 0));
    EXPECT_EQ(out->logits[FakeModel::kVocab], FakeModel::logit(6, 0));
    draft.computed->fault = "it cannot multiply";
    EXPECT_THAT(part.compute(step.batch(), nullptr).error(), HasSubstr("it cannot multiply"));
}

}  // namespace
}  // namespace patchbay::execution::testing::local_executor_test
