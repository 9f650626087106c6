// What a StepPacker keeps for sequences that come later, and counts of pages for later steps.
#include "patchbay/sdk/step_packer.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace patchbay::detail::step_packer_test {
namespace {

struct Shown { // what a scheduler is shown: pages of 16 tokens in one group
    pb_sequence& run(uint64_t id, uint32_t prompt, uint32_t outputs, uint32_t computed) {
        pb_sequence s{};
        s.id = id;
        s.prompt_tokens = prompt;
        s.output_tokens = outputs;
        s.computed_tokens = computed;
        s.pages = (computed + 15) / 16;
        s.tokens_until_next_page = s.pages * 16 - computed;
        return running.emplace_back(s);
    }
    SchedulerStep step() {
        in.struct_size = sizeof in;
        in.sequence_stride = sizeof(pb_sequence);
        in.block_size = 16;
        in.kv_groups = 1;
        in.running = running.data();
        in.running_count = static_cast<uint32_t>(running.size());
        return SchedulerStep(in);
    }

    pb_scheduler_in in{};
    std::vector<pb_sequence> running;
};

TEST(HeldForOthers, IsATokenForEachDecodeAndAPageOfTokensForEachPromptStillToBePlanned) {
    Shown shown;
    shown.run(1, 32, 1, 32).draft_tokens = 3; // its token needs a page
    shown.run(2, 30, 1, 30);                  // its token needs none
    shown.run(3, 100, 0, 24);                 // a prompt: 16 tokens, of which 8 fit its pages
    shown.run(4, 40, 0, 35);                  // a prompt of which 5 tokens are left
    const SchedulerStep step = shown.step();
    HeldForOthers held(step);
    EXPECT_EQ(held.tokens(), 0u);
    held.hold(true);
    EXPECT_EQ(held.tokens(), 1u + 1 + 16 + 5);
    EXPECT_EQ(held.pages(), 1u + 0 + 1 + 0);
    held.let_go(step.running[0]);
    EXPECT_EQ(held.tokens(), 22u);
    EXPECT_EQ(held.pages(), 1u);
    held.let_go(step.running[1]);
    held.let_go(step.running[2]);
    EXPECT_EQ(held.tokens(), 5u);
    EXPECT_EQ(held.pages(), 0u);
    held.let_go(step.running[3]);
    EXPECT_EQ(held.tokens(), 0u);
}

TEST(HeldForOthers, IsNothingForPromptsThatArePlannedAlready) {
    Shown shown;
    shown.run(1, 32, 1, 32).draft_tokens = 3;
    shown.run(2, 100, 0, 16);
    const SchedulerStep step = shown.step();
    HeldForOthers held(step);
    held.hold(false);
    EXPECT_EQ(held.tokens(), 1u);
    EXPECT_EQ(held.pages(), 1u);
}

TEST(HeldForOthers, KeepsToTheThresholdOfPrompts) {
    Shown shown;
    shown.in.long_prefill_token_threshold = 3;
    shown.run(1, 32, 1, 32).draft_tokens = 3;
    shown.run(2, 100, 0, 16);
    const SchedulerStep step = shown.step();
    HeldForOthers held(step);
    held.hold(true);
    EXPECT_EQ(held.tokens(), 4u);
}

TEST(HeldForOthers, IsNothingWhereNoneHasDrafts) {
    Shown shown;
    shown.run(1, 32, 1, 32);
    shown.run(2, 30, 1, 30);
    const SchedulerStep step = shown.step();
    HeldForOthers held(step);
    held.hold(true);
    EXPECT_EQ(held.tokens(), 0u);
    held.let_go(step.running[0]);
    EXPECT_EQ(held.tokens(), 0u) << "what was not held is not let go";
    EXPECT_EQ(held.pages(), 0u);
}

TEST(LaterPages, AreThoseOfTokensThatAStepDoesNotCompute) {
    Shown shown;
    shown.in.flags = PB_STEP_RESERVE_FULL;
    shown.run(1, 100, 0, 16); // 84 tokens are left: 6 pages
    const SchedulerStep step = shown.step();
    const pb_sequence& s = step.running[0];
    LaterPages later(step);
    EXPECT_EQ(later.of(s, 0, 84), 6u);
    EXPECT_EQ(later.of(s, 16, 84), 5u);
    EXPECT_EQ(later.of(s, 84, 84), 0u);
    later.add(s, 16);
    later.add(2);
    EXPECT_EQ(later.total(), 7u);
    later.remove(s, 16);
    EXPECT_EQ(later.total(), 2u);
}

TEST(LaterPages, AreNoneWhereAdmittingLooksAtOneStepAlone) {
    Shown shown;
    shown.run(1, 100, 0, 16);
    const SchedulerStep step = shown.step();
    LaterPages later(step);
    EXPECT_EQ(later.of(step.running[0], 0, 84), 0u);
    later.add(step.running[0], 16);
    EXPECT_EQ(later.total(), 0u);
}

TEST(StepPacker, CutsDraftsToThePagesThatThereAre) {
    for (const auto& [free_pages, planned] : {std::pair(0u, 6u), {1u, 9u}}) {
        Shown shown;
        shown.in.max_num_batched_tokens = 100;
        shown.in.max_num_seqs = 8;
        shown.in.free_pages = free_pages;
        shown.run(1, 32, 11, 42).draft_tokens = 8; // its page has room for its token and five drafts
        const SchedulerStep step = shown.step();
        std::vector<pb_plan_item> items(8);
        pb_scheduler_out out{};
        out.items = items.data();
        out.item_stride = sizeof(pb_plan_item);
        out.item_capacity = static_cast<uint32_t>(items.size());
        Plan plan(out);
        StepPacker(step, plan).keep_running(arrived_later);
        ASSERT_EQ(plan.size(), 1u);
        EXPECT_EQ(items[0].tokens, planned) << free_pages;
    }
}

TEST(PagesAlone, CountThoseThatOthersMayGiveBack) {
    Shown shown;
    shown.run(1, 64, 0, 0).cached_pages_in_use = 2;
    const SchedulerStep step = shown.step();
    const pb_sequence& s = step.running[0];
    EXPECT_EQ(step.pages_for(s, 32, 32), 2u);
    EXPECT_EQ(pages_alone(step, s, 32, 32), 4u);
    EXPECT_EQ(pages_alone(step, s, 64, 0), 4u) << "nothing of it is found in the cache";
}

}  // namespace
}  // namespace patchbay::detail::step_packer_test
