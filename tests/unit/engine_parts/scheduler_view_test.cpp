// What a scheduler is shown: budgets, pages, and the sequences as they are.
#include "engine/scheduling/scheduler_view.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::scheduler_view_test {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> ids(const pb_sequence* records, uint32_t count) {
    std::vector<uint64_t> out;
    for (uint32_t i = 0; i < count; ++i) out.push_back(records[i].id);
    return out;
}

struct Bench : QueueNeighbours {
    explicit Bench(World w = {}, double watermark = 0) : QueueNeighbours(std::move(w)), pressure(watermark) {}
    PressureMonitor pressure;
    SchedulerView view{settings, sequences, kv, hints, beams.room(), pressure};
};

TEST(SchedulerView, ShowsBudgetsAndPages) {
    World w;
    w.blocks = 100;
    w.groups = {{}, {kv::GroupKind::kSliding, 8}, {kv::GroupKind::kRecurrent, 0}};
    w.settings.long_prefill_token_threshold = 7;
    Bench b(std::move(w), 0.25);
    b.run(4, 4);
    const pb_scheduler_in in = b.view.show(42);
    EXPECT_EQ(in.struct_size, sizeof in);
    EXPECT_EQ(in.sequence_stride, sizeof(pb_sequence));
    EXPECT_EQ(in.step, 42u);
    EXPECT_EQ(in.max_num_batched_tokens, 64u);
    EXPECT_EQ(in.max_num_seqs, 8u);
    EXPECT_EQ(in.block_size, 4u);
    EXPECT_EQ(in.kv_groups, 2u);
    EXPECT_THAT(std::vector(in.group_windows, in.group_windows + 2), ElementsAre(0, 8));
    EXPECT_EQ(in.state_pages, 1u);
    EXPECT_EQ(in.total_pages, 100u);
    EXPECT_EQ(in.free_pages, 97u) << "one page of each group is in use";
    EXPECT_EQ(in.watermark_pages, 25u);
    EXPECT_EQ(in.long_prefill_token_threshold, 7u);
    EXPECT_EQ(in.flags, uint32_t{PB_STEP_CHUNKED_PREFILL});
}

TEST(SchedulerView, SaysWhatAnAdmissionHasToKeepTo) {
    World w;
    w.settings.enable_chunked_prefill = false;
    w.settings.reserve_full_sequence = true;
    Bench b(std::move(w));
    EXPECT_EQ(b.view.show(1).flags, uint32_t{PB_STEP_RESERVE_FULL});
}

TEST(SchedulerView, ShowsSequencesInTheirOrders) {
    Bench b;
    Sequence &first = b.run(8, 3), &second = b.run(4, 4), &waits = b.wait(4);
    first.in_flight.tokens = 2;
    const pb_scheduler_in in = b.view.show(1);
    EXPECT_THAT(ids(in.running, in.running_count), ElementsAre(first.id, second.id));
    EXPECT_THAT(ids(in.waiting, in.waiting_count), ElementsAre(waits.id));
    EXPECT_EQ(in.running[0].computed_tokens, 3u);
    EXPECT_EQ(in.running[0].in_flight, 2u);
    EXPECT_EQ(in.waiting[0].computed_tokens, 0u);
}

TEST(SchedulerView, SharedPagesDoNotComeFreeWherePagesAreScarce) {
    World w;
    w.blocks = 6;
    Bench b(std::move(w));
    Sequence &first = b.run(8, 8), &second = b.run(4, 0);
    ASSERT_TRUE(b.kv.tables().fork(first.kv.table, 6, second.kv.table));
    const pb_scheduler_in in = b.view.show(1);
    EXPECT_EQ(in.running[0].pages, 2u);
    EXPECT_EQ(in.running[0].pages_freed_if_preempted, 0u);
}

// Two that run and share a page, with free pages enough for any step.
std::vector<uint32_t> freed_if_preempted(const config::EngineSettings& settings, bool one_waits) {
    World w;
    w.blocks = 100;
    w.settings = settings;
    Bench b(std::move(w));
    Sequence &first = b.run(8, 8), &second = b.run(4, 0);
    EXPECT_TRUE(b.kv.tables().fork(first.kv.table, 4, second.kv.table));
    if (one_waits) b.wait(4);
    const pb_scheduler_in in = b.view.show(1);
    return {in.running[0].pages_freed_if_preempted, in.running[1].pages_freed_if_preempted};
}

TEST(SchedulerView, SharedPagesDoNotComeFreeWhereAdmittingLooksAtAllTokens) {
    World w;
    EXPECT_THAT(freed_if_preempted(w.settings, true), ElementsAre(2, 1)) << "a bound: pages are plentiful";
    w.settings.reserve_full_sequence = true;
    EXPECT_THAT(freed_if_preempted(w.settings, true), ElementsAre(1, 0));
    EXPECT_THAT(freed_if_preempted(w.settings, false), ElementsAre(2, 1)) << "none waits";
}

SamplingParams beams(uint32_t width) {
    SamplingParams p;
    p.beam_width = width;
    p.n = width;
    return p;
}

TEST(SchedulerView, BeamsWithoutSeatsAndThoseAfterThemAreNotShown) {
    World w;
    w.settings.max_num_seqs = 3;
    Bench b(std::move(w));
    b.run(4, 4);
    b.run(4, 4);
    Sequence& before = b.wait(4);
    auto all = std::vector<Sequence*>{&b.wait(4, beams(2))};
    auto other = sequence(b.next_id++, 4, beams(2));
    other->group = all[0]->id;
    other->place = Place::kHeld;
    all.push_back(&b.sequences.add(std::move(other)));
    b.siblings.add(all);
    b.beams.add(all);
    Sequence& after = b.wait(4);
    const pb_scheduler_in in = b.view.show(1);
    EXPECT_THAT(ids(in.waiting, in.waiting_count), ElementsAre(before.id)) << "or the beams might wait for ever";
    const pb_scheduler_in whole = b.view.show_all(1);
    EXPECT_THAT(ids(whole.waiting, whole.waiting_count), ElementsAre(before.id, all[0]->id, after.id));
}

}  // namespace
}  // namespace patchbay::engine::testing::scheduler_view_test
