// The attention's slot over what exchanges it: what becomes of KV that the new one can read, cannot read, or has
// written on probation.
#include "engine/swap/attention_swaps.hpp"

#include <gmock/gmock.h>

#include "config/engine_config.hpp"
#include "engine/facts.hpp"
#include "engine/swap/swaps.hpp"
#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing::attention_swaps_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeExchange final : public execution::AttentionExchange {
  public:
    bool reads_pages = true;
    std::string fault; // use() fails with it
    std::vector<std::string> calls;
    const host::Component* in_use = nullptr;

    std::unique_ptr<host::Component> give() override {
        auto first = play<FakeSampler>(kFakeSampler).component;
        in_use = first.get();
        return first;
    }
    Result<> check(host::Component&) override { return fail("its pages are larger"); }
    Result<bool> use(const host::Component& c) override {
        calls.push_back("use");
        if (!fault.empty()) return fail(fault);
        in_use = &c;
        return reads_pages;
    }
    std::string layout() const override { return "layout of " + std::string(reads_pages ? "both" : "the new one"); }
    void forget() override { calls.push_back("forget"); }
    void end() override { calls.push_back("end"); }
};

struct Bench : RowNeighbours {
    Bench() {
        plugins = {named("attention", "fake")};
        facts.kv.layout = "the first one's";
        computed = &run(8, 8);
    }
    execution::Executor& with_exchange() {
        executor.attention_exchange = &exchange;
        return executor;
    }
    void enter() {
        part.slot().line().post(part.slot().line().prepare(play<FakeSampler>(kFakeSampler).component,
                                                           named("attention", "next")));
        swaps.at_boundary(false);
    }
    bool is_computed_anew() const { return computed->place == Place::kWaiting && computed->computed == 0; }

    Sequence* computed = nullptr;
    EngineFacts facts;
    FakeExchange exchange;
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
    Recomputation recomputation{sequences, kv, hints, preemption, prompt_logprobs, facts};
    AttentionSwaps part{facts, with_exchange(), recomputation, clock, context, journal};
    config::SwapSettings swap_settings{.probation_steps = 1, .max_call_ms = 0};
    Swaps swaps{{swap_settings, {&part}, journal, context, clock}};
};

TEST(AttentionSwaps, OneThatReadsThePagesGoesOnWithThem) {
    Bench b;
    const host::Component* const first = &b.part.slot().current();
    EXPECT_EQ(b.exchange.in_use, first) << "what the executor computes with is in the slot";
    b.enter();
    EXPECT_NE(b.exchange.in_use, first);
    EXPECT_EQ(b.exchange.in_use, &b.part.slot().current());
    EXPECT_FALSE(b.is_computed_anew());
    EXPECT_EQ(b.facts.kv.layout, "the first one's");
    b.swaps.end_step({true, true});
    EXPECT_THAT(b.exchange.calls, ElementsAre("use", "forget")) << "the one before it may go once it is committed";
}

TEST(AttentionSwaps, OneWithAnotherLayoutComputesAllAnew) {
    Bench b;
    b.exchange.reads_pages = false;
    b.enter();
    EXPECT_TRUE(b.is_computed_anew());
    EXPECT_EQ(b.facts.kv.layout, "layout of the new one");
}

TEST(AttentionSwaps, OneThatCannotBeBoundChangesNothing) {
    Bench b;
    const host::Component* const first = &b.part.slot().current();
    b.exchange.fault = "no room";
    b.enter();
    EXPECT_EQ(&b.part.slot().current(), first);
    ASSERT_EQ(b.report().swaps.size(), 2u);
    EXPECT_EQ(b.report().swaps[1].state, host::SwapState::kRolledBack);
    EXPECT_EQ(b.report().swaps[1].phase, "bind");
    EXPECT_THAT(b.report().swaps[1].reason, HasSubstr("no room"));
    EXPECT_FALSE(b.is_computed_anew());
    EXPECT_THAT(b.exchange.calls, ElementsAre("use")) << "the first one is bound still";
}

TEST(AttentionSwaps, WhatOneHasWrittenThatIsRolledBackIsComputedAnew) {
    Bench b;
    const host::Component* const first = &b.part.slot().current();
    b.enter();
    ASSERT_FALSE(b.is_computed_anew());
    EXPECT_TRUE(b.swaps.recover(fail("it cannot add")));
    EXPECT_EQ(b.exchange.in_use, first);
    EXPECT_TRUE(b.is_computed_anew()) << "though the layout is the same";
    EXPECT_THAT(b.exchange.calls, ElementsAre("use", "use", "forget"));
    EXPECT_FALSE(b.part.roll_back("run", fail("again"))) << "none is on probation";
}

TEST(AttentionSwaps, ACandidateMustFitWhatComputes) {
    Bench b;
    const auto c = play<FakeSampler>(kFakeSampler).component;
    EXPECT_TRUE(b.part.takes_swaps());
    EXPECT_TRUE(b.part.computes());
    EXPECT_EQ(b.part.fits(*c).error(), "its pages are larger");
}

TEST(AttentionSwaps, NothingIsComputedAfterItsEnd) {
    FakeExchange exchange;
    Bench b;
    b.executor.attention_exchange = &exchange;
    { const AttentionSwaps part(b.facts, b.executor, b.recomputation, b.clock, b.context, b.journal); }
    EXPECT_THAT(exchange.calls, ElementsAre("end"));
}

TEST(AttentionSwaps, TheTimeOfAStepIsThatOfAllItsCalls) {
    Bench b;
    b.report().calls.forward.attention_plan = 1;
    b.report().calls.forward.attention_append = 20;
    b.report().calls.forward.attention_run = 300;
    const SwapPort::StepCall call = b.part.call_of({true, false});
    EXPECT_EQ(call.ns, 321u);
    EXPECT_TRUE(call.made);
    EXPECT_FALSE(b.part.call_of({false, false}).made);
}

TEST(AttentionSwaps, WithoutAnExchangeThereIsNoSwap) {
    Bench b;
    b.executor.attention_exchange = nullptr;
    AttentionSwaps part(b.facts, b.executor, b.recomputation, b.clock, b.context, b.journal);
    EXPECT_FALSE(part.takes_swaps());
    EXPECT_FALSE(part.slot().filled());
}

}  // namespace
}  // namespace patchbay::engine::testing::attention_swaps_test
