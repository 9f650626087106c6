// What a sequence loses that is preempted: its KV, or its place on the device only; and when which of the two.
#include "engine/placement/preemption.hpp"

#include <gmock/gmock.h>

#include "engine/placement/pressure.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::preemption_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Each;
using ::testing::Field;

World with(config::PreemptionMode mode, uint32_t slots = 16) {
    World w;
    w.settings.preemption_mode = mode;
    w.slots = slots;
    return w;
}

struct Bench : QueueNeighbours {
    explicit Bench(World w = {}) : QueueNeighbours(std::move(w)) {}
    std::array<uint32_t, kSwapFallbacks> fallbacks() { return report().preemption.swap_fallbacks; }
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
};

TEST(Preemption, ByRecomputeGivesAllPagesBackAndKeepsTheTokens) {
    Bench b;
    Sequence& s = b.run(9, 9);
    s.tokens.insert(s.tokens.end(), {7, 8, 9}); // an output token and two drafts
    s.drafts = 2;
    b.preemption.preempt(s, PB_PREEMPT_RECOMPUTE);
    EXPECT_EQ(b.kv.pool().used(), 0u);
    EXPECT_EQ(s.place, Place::kWaiting);
    EXPECT_EQ(s.computed, 0u);
    EXPECT_EQ(s.tokens.size(), 10u) << "drafts do not wait";
    EXPECT_EQ(s.drafts, 0u);
    EXPECT_EQ(s.record.preemptions, 1u);
    EXPECT_EQ(b.report().preemption.preemptions, 1u);
    EXPECT_EQ(b.report().preemption.preempted_tokens, 9u);
    EXPECT_EQ(b.report().preemption.swapped_out, 0u);
    EXPECT_TRUE(b.sequences.waiting().records()[0].flags & PB_SEQ_PREEMPTED);
}

TEST(Preemption, TheLatestWaitsBeforeAllOthersAndTheSchedulerHearsOfNoneTwice) {
    Bench b;
    Sequence &first = b.run(4, 4), &second = b.run(4, 4), &waits = b.wait(4);
    b.preemption.preempt(second, PB_PREEMPT_RECOMPUTE);
    b.preemption.preempt(first, PB_PREEMPT_RECOMPUTE);
    EXPECT_THAT(b.waiting(), ElementsAre(first.id, second.id, waits.id));
    EXPECT_THAT(b.policy.arrived, ElementsAre(first.id, second.id, waits.id));
    EXPECT_TRUE(b.sequences.running().empty());
}

TEST(Preemption, BySwapMovesKvToHostMemoryAndBack) {
    Bench b(with(config::PreemptionMode::kSwap));
    Sequence& s = b.run(9, 9);
    const auto pages = s.kv.table.pages[0];
    b.preemption.preempt(s, PB_PREEMPT_RECOMPUTE);
    EXPECT_EQ(b.report().preemption.swapped_out, 1u);
    EXPECT_EQ(b.report().preemption.preempted_tokens, 0u);
    EXPECT_EQ(b.kv.pool().used(), 0u);
    EXPECT_EQ(s.kv.swapped.tokens, 9u);
    ASSERT_EQ(b.kv.copies().copies().size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(b.kv.copies().copies()[i].from, pages[i]);
    const pb_sequence record = b.sequences.waiting().records()[0];
    EXPECT_EQ(record.flags, PB_SEQ_PREEMPTED | PB_SEQ_SWAPPED);
    EXPECT_EQ(record.cached_tokens, 9u);

    b.kv.copies().clear();
    ASSERT_TRUE(b.preemption.swap_in(s));
    EXPECT_EQ(s.computed, 9u);
    EXPECT_EQ(b.kv.shape().capacity(s.kv.table), 12u) << "with room for a token more";
    EXPECT_THAT(b.kv.copies().copies(), Each(Field(&kv::PageCopy::way, kv::Way::kToDevice)));
}

TEST(Preemption, SwapsInOnlyWhereThereArePagesForAllAndATokenMore) {
    World w = with(config::PreemptionMode::kSwap);
    w.blocks = 4;
    Bench b(std::move(w));
    Sequence& s = b.run(8, 8);
    b.preemption.preempt(s, PB_PREEMPT_RECOMPUTE);
    Sequence& other = b.run(8, 8);
    EXPECT_FALSE(b.preemption.swap_in(s)) << "two pages are free, and it needs a third for its next token";
    EXPECT_EQ(s.computed, 0u);
    EXPECT_EQ(b.kv.pool().used(), 2u);
    b.kv.tables().release(other.kv.table);
    EXPECT_TRUE(b.preemption.swap_in(s));
}

TEST(Preemption, RecomputesWhatDoesNotFitIntoHostMemoryAndSaysSo) {
    Bench b(with(config::PreemptionMode::kSwap, 2));
    Sequence& s = b.run(9, 9);
    b.preemption.preempt(s, PB_PREEMPT_SWAP);
    EXPECT_TRUE(s.kv.swapped.empty());
    EXPECT_EQ(b.kv.swap().space().used(), 0u);
    EXPECT_THAT(b.fallbacks(), ElementsAre(1, 0, 0));
    EXPECT_EQ(name_of(SwapFallback::kFull), "full");
    EXPECT_EQ(b.report().preemption.preempted_tokens, 9u);
}

TEST(Preemption, SwapsNothingOfASequenceThatHasComputedNothing) {
    Bench b(with(config::PreemptionMode::kSwap));
    Sequence& s = b.run(9, 0);
    ASSERT_TRUE(b.kv.tables().grow(s.kv.table, 4));
    b.preemption.preempt(s, PB_PREEMPT_SWAP);
    EXPECT_TRUE(s.kv.swapped.empty());
    EXPECT_EQ(b.kv.pool().used(), 0u);
    EXPECT_THAT(b.fallbacks(), Each(0u)) << "there was nothing to swap: nothing fell back";
}

TEST(Preemption, RecomputeIsTheModesWordAgainstThePolicys) {
    Bench b;
    Sequence& s = b.run(9, 9);
    b.preemption.preempt(s, PB_PREEMPT_SWAP);
    EXPECT_TRUE(s.kv.swapped.empty());
}

TEST(Preemption, AutoTakesWhatIsCheaperOnceItIsMeasured) {
    Bench b(with(config::PreemptionMode::kAuto));
    b.executor.page_ns = 100;
    b.preemption.preempt(b.run(8, 8), PB_PREEMPT_RECOMPUTE);
    EXPECT_THAT(b.fallbacks(), ElementsAre(0, 0, 1)) << "no step has come back yet";
    b.preemption.note_step(10, 0, 490); // 49 ns a token: two pages there and back take 400, 8 tokens 392
    b.preemption.preempt(b.run(8, 8), PB_PREEMPT_RECOMPUTE);
    EXPECT_THAT(b.fallbacks(), ElementsAre(0, 1, 1));
    b.executor.page_ns = 97;
    b.preemption.preempt(b.run(8, 8), PB_PREEMPT_RECOMPUTE);
    EXPECT_EQ(b.report().preemption.swapped_out, 1u);
}

TEST(Preemption, AutoFollowsAPolicyThatWantsASwap) {
    Bench b(with(config::PreemptionMode::kAuto));
    b.executor.page_ns = 1e9;
    Sequence& s = b.run(8, 8);
    b.preemption.preempt(s, PB_PREEMPT_SWAP);
    EXPECT_FALSE(s.kv.swapped.empty());
    EXPECT_THAT(b.fallbacks(), Each(0u));
}

TEST(Preemption, CopiesAreNoTimeOfComputing) {
    Bench b;
    b.executor.page_ns = 30;
    b.preemption.note_step(10, 5, 650);
    EXPECT_DOUBLE_EQ(b.preemption.token_ns(), 50);
    Bench short_step;
    short_step.executor.page_ns = 1000;
    short_step.preemption.note_step(10, 5, 650); // less than the copies are said to take
    EXPECT_DOUBLE_EQ(short_step.preemption.token_ns(), 0);
}

TEST(Preemption, FreesOnlyPagesThatNoOtherHolds) {
    Bench b;
    SamplingParams p;
    p.n = 2;
    Sequence &first = b.run(8, 8, p), &second = b.wait(8, p);
    b.admission.leave(second);
    b.sequences.run(second);
    ASSERT_TRUE(b.kv.tables().fork(first.kv.table, 7, second.kv.table));
    second.computed = 7;
    b.preemption.preempt(first, PB_PREEMPT_RECOMPUTE);
    EXPECT_EQ(b.kv.pool().used(), 2u);
    b.preemption.preempt(second, PB_PREEMPT_RECOMPUTE);
    EXPECT_EQ(b.kv.pool().used(), 0u);
}

TEST(Preemption, OfASiblingTakesBackWhatOthersWereShownOfIt) {
    Bench b;
    const auto all = b.add_siblings(2, 8);
    b.admission.leave(*all[0]);
    b.sequences.run(*all[0]);
    ASSERT_TRUE(b.kv.tables().grow(all[0]->kv.table, 8));
    all[0]->computed = 8;
    for (Sequence* s : b.siblings.release(*all[0])) b.admission.put_first(*s);
    EXPECT_EQ(b.sequences.waiting().records()[0].cached_tokens, 7u);
    b.preemption.preempt(*all[0], PB_PREEMPT_RECOMPUTE);
    EXPECT_THAT(b.waiting(), ElementsAre(all[0]->id, all[1]->id));
    EXPECT_EQ(b.sequences.waiting().records()[1].cached_tokens, 0u);
}

TEST(Preemption, WhatIsComputedAnewIsNotFoundInTheCache) {
    World w = with(config::PreemptionMode::kSwap);
    w.caching = kv::PrefixCaching::kOn;
    Bench b(std::move(w));
    Sequence& s = b.run(9, 9);
    b.kv.prefixes().cache_full_blocks(s.kv.table, s.tokens);
    EXPECT_EQ(b.kv.prefixes().count_cached(s.tokens), 8u);
    s.in_flight.tokens = 1;
    s.in_flight.placeholders = 1;
    b.preemption.compute_anew(s);
    EXPECT_EQ(b.kv.prefixes().count_cached(s.tokens), 0u);
    EXPECT_EQ(s.in_flight.tokens + s.in_flight.placeholders, 0u);
    EXPECT_TRUE(s.kv.swapped.empty()) << "it is worth no place in host memory";
    EXPECT_EQ(b.report().preemption.preempted_tokens, 9u);
}

TEST(Preemption, PagesLackWhereThoseThatRunNeedMoreThanAreFree) {
    World w;
    w.blocks = 4;
    Bench b(std::move(w));
    Sequence& s = b.run(12, 8);
    EXPECT_FALSE(b.preemption.lacks_pages()) << "two are free, and one is needed";
    Sequence& other = b.run(8, 4);
    EXPECT_TRUE(b.preemption.lacks_pages());
    other.idle = true;
    EXPECT_FALSE(b.preemption.lacks_pages()) << "an idle beam writes nothing";
    s.in_flight.placeholders = 1;
    EXPECT_TRUE(b.preemption.lacks_pages()) << "a token in flight needs a page, too";
}

TEST(Preemption, ACopyOfASharedPageNeedsAPageToo) {
    World w;
    w.blocks = 2;
    Bench b(std::move(w));
    SamplingParams p;
    p.n = 2;
    Sequence &first = b.run(7, 7, p), &second = b.wait(7, p);
    b.admission.leave(second);
    b.sequences.run(second);
    ASSERT_TRUE(b.kv.tables().fork(first.kv.table, 6, second.kv.table));
    second.computed = 6;
    EXPECT_TRUE(b.preemption.lacks_pages()) << "both write to the last page, and none is free";
}

TEST(PressureMonitor, RisesWithPreemptionsAndFallsBackInCalm) {
    PressureMonitor p(0.01);
    EXPECT_DOUBLE_EQ(p.watermark(), 0.01);
    p.step(3);
    const double raised = p.watermark();
    EXPECT_DOUBLE_EQ(raised, 0.01 + 3 * 0.02);
    p.step(0);
    EXPECT_LT(p.watermark(), raised);
    EXPECT_GT(p.watermark(), 0.01 + 0.9 * (raised - 0.01)) << "a step without a preemption says little";
    for (int i = 0; i < 5000; ++i) p.step(0);
    EXPECT_NEAR(p.watermark(), 0.01, 1e-6);
    EXPECT_GE(p.watermark(), 0.01);
}

TEST(PressureMonitor, KeepsHalfOfThePagesAtMostUnlessItIsSetHigher) {
    PressureMonitor p(0.01), high(0.8);
    for (int i = 0; i < 100; ++i) p.step(10);
    EXPECT_DOUBLE_EQ(p.watermark(), 0.5);
    high.step(10);
    EXPECT_DOUBLE_EQ(high.watermark(), 0.8);
    high.step(0);
    EXPECT_DOUBLE_EQ(high.watermark(), 0.8);
}

}  // namespace
}  // namespace patchbay::engine::testing::preemption_test
