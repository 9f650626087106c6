// What a step leaves, as its report says it: the queue and the pages.
#include "engine/loop/step_summary.hpp"

#include <gmock/gmock.h>

#include "engine/placement/pressure.hpp"
#include "engine/sampling/structured_output.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::step_summary_test {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kMs = 1'000'000;

struct Bench : RowNeighbours {
    explicit Bench(World w = {}) : RowNeighbours(std::move(w)) {}
    Sequence& arrived(uint64_t at_ns, uint32_t preemptions = 0) {
        auto made = sequence(next_id++, 4);
        request_of(*made).arrival_ns = at_ns;
        made->record.preemptions = preemptions;
        return wait(std::move(made));
    }

    PressureMonitor pressure{0.25};
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
    StructuredOutput structured_output{nullptr, eos, kVocab, clock, context};
    StepSummary part{{sequences, kv, pressure, preemption, executor, structured_output, clock, context}};
};

TEST(StepSummary, CountsWhoRunsAndWaitsAndForHowLong) {
    Bench b;
    b.run(4, 4);
    b.arrived(5 * kMs, 1); // preempted ones are in front
    b.arrived(2 * kMs);
    b.arrived(8 * kMs);
    b.clock.advance_ns(10 * kMs);
    b.part.note_state();
    EXPECT_EQ(b.report().queues.running_requests, 1u);
    EXPECT_EQ(b.report().queues.waiting_requests, 3u);
    EXPECT_EQ(b.report().queues.waiting_tokens, 12u);
    EXPECT_EQ(b.report().queues.oldest_wait_ns, 8 * kMs);
    EXPECT_EQ(b.report().end_ns, 10 * kMs);
}

TEST(StepSummary, WithoutAQueueNothingWaits) {
    Bench b;
    b.clock.advance_ns(10 * kMs);
    b.part.note_state();
    EXPECT_EQ(b.report().queues.oldest_wait_ns, 0u);
}

TEST(StepSummary, CountsPagesByWhatTheyKeepAndWhatIsEmptyInThem) {
    World w;
    w.groups = {{}, {kv::GroupKind::kSliding, 4}};
    w.slots = 6;
    Bench b(std::move(w));
    Sequence &s = b.run(12, 10), &swapped = b.run(4, 4);
    b.kv.tables().free_outside_window(s.kv.table, 10);
    ASSERT_TRUE(b.kv.swap().out(swapped.kv.table, 4, swapped.kv.swapped));
    b.admission.leave(swapped);
    b.part.note_state();
    EXPECT_EQ(b.report().kv.total_pages, 16u);
    EXPECT_EQ(b.report().kv.used_pages, 5u);
    EXPECT_THAT(b.report().kv.group_pages, ElementsAre(3, 2, 0));
    EXPECT_EQ(b.report().kv.token_slots, 12u) << "a block counts until all groups have passed it";
    EXPECT_EQ(b.report().kv.empty_slots, 2u);
    EXPECT_EQ(b.report().preemption.swap_pages, 6u);
    EXPECT_EQ(b.report().preemption.used_swap_pages, 2u);
    EXPECT_EQ(b.report().kv.watermark, 0.25);
}

TEST(StepSummary, CountsThePagesThatTheCacheLostSinceTheStepBefore) {
    World w;
    w.blocks = 2;
    w.caching = kv::PrefixCaching::kOn;
    Bench b(std::move(w));
    const auto fill = [&](uint32_t pages) { // all of them, with KV that can be found again
        Sequence& s = b.run(4 * pages, 4 * pages);
        b.kv.prefixes().cache_full_blocks(s.kv.table, s.tokens);
        b.kv.tables().release(s.kv.table);
    };
    fill(2);
    b.part.note_state();
    EXPECT_EQ(b.report().kv.evicted_pages, 0u);
    fill(1);
    b.part.note_state();
    EXPECT_EQ(b.report().kv.evicted_pages, 1u);
    b.part.note_state();
    EXPECT_EQ(b.report().kv.evicted_pages, 0u);
}

TEST(StepSummary, SaysWhatTokensAndCopiesTakeAsMeasured) {
    Bench b;
    b.executor.page_ns = 40;
    b.preemption.note_step(10, 0, 700);
    b.part.note_state();
    EXPECT_EQ(b.report().preemption.host_page_ns, 40);
    EXPECT_EQ(b.report().preemption.token_ns, 70);
}

TEST(StepSummary, TakesOverWhatTheExecutorSaysOfItsPass) {
    Bench b;
    b.executor.passed.graphs = 3;
    b.executor.passed.graph_bytes = 500;
    b.executor.passed.broadcast_bytes = 70;
    b.executor.passed.times.sampler = 20;
    b.executor.passed.graph.miss = runner::GraphMiss::kNone;
    b.report().calls.sample_ns = 5;
    b.part.note_pass();
    EXPECT_EQ(b.report().graph.captured, 3u);
    EXPECT_EQ(b.report().graph.bytes, 500u);
    EXPECT_EQ(b.report().broadcast_bytes, 70u);
    EXPECT_EQ(b.report().calls.sample_ns, 25u) << "in the pass and after it";
    EXPECT_TRUE(b.report().graph.replayed);
    b.executor.passed.graph.miss = runner::GraphMiss::kDevice;
    b.part.note_pass();
    EXPECT_FALSE(b.report().graph.replayed);
    EXPECT_EQ(b.report().graph.miss, "device");
}

}  // namespace
}  // namespace patchbay::engine::testing::step_summary_test
