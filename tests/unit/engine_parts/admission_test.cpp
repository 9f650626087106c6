// The way into the queue: in time, in order, while there is room.
#include "engine/scheduling/admission.hpp"

#include <gmock/gmock.h>

#include "kv/prefix_cache.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::admission_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Bench : QueueNeighbours {
    explicit Bench(uint32_t max_waiting = 0)
        : part(sequences, hints, scheduler, context, max_waiting) {}
    Sequence& arrive(uint64_t at_ns) {
        auto made = sequence(next_id++, 4);
        request_of(*made).arrival_ns = at_ns;
        return sequences.add(std::move(made));
    }
    Admission part;
};

TEST(Admission, TakesThoseIntoTheQueueWhoseTimeHasCome) {
    Bench b;
    Sequence &late = b.arrive(30), &early = b.arrive(10), &middle = b.arrive(20);
    b.context.now_ns = 20;
    b.part.admit();
    EXPECT_THAT(b.waiting(), ElementsAre(early.id, middle.id));
    EXPECT_EQ(late.place, Place::kPending);
    EXPECT_THAT(b.policy.arrived, ElementsAre(early.id, middle.id));
    b.context.now_ns = 30;
    b.part.admit();
    EXPECT_THAT(b.waiting(), ElementsAre(early.id, middle.id, late.id));
}

TEST(Admission, RefusesThoseThatArriveAtAFullQueue) {
    Bench b(2);
    for (int i = 0; i < 4; ++i) b.arrive(10);
    EXPECT_FALSE(b.part.is_full());
    EXPECT_FALSE(b.part.is_full_by(9));
    EXPECT_TRUE(b.part.is_full_by(10)) << "with two before it";
    b.context.now_ns = 10;
    b.part.admit();
    EXPECT_THAT(b.waiting(), ElementsAre(1, 2));
    EXPECT_TRUE(b.part.is_full());
    EXPECT_THAT(b.part.take_refused(), ElementsAre(3, 4));
    EXPECT_THAT(b.part.take_refused(), IsEmpty()) << "once";
    EXPECT_EQ(b.part.full_queue(), "the queue is full: max_waiting is 2");
    EXPECT_THAT(b.policy.arrived, ElementsAre(1, 2)) << "the scheduler never hears of the others";
}

TEST(Admission, WithoutALimitTheQueueIsNeverFull) {
    Bench b;
    for (int i = 0; i < 100; ++i) b.arrive(1);
    b.context.now_ns = 1;
    b.part.admit();
    EXPECT_EQ(b.waiting().size(), 100u);
    for (int i = 0; i < 100; ++i) b.arrive(2);
    EXPECT_FALSE(b.part.is_full_by(2));
}

// A swap of the attention or the model preempts all that run, and the requests that arrive then must not end for it.
TEST(Admission, PreemptedRequestsTakeNoPlaceInTheQueue) {
    World w;
    w.settings.max_waiting = 2;
    QueueNeighbours b(std::move(w));
    Preemption preemption{{b.settings, b.sequences, b.kv, b.admission, b.hints, b.beams, b.draft_kv, b.executor,
                           b.context}};
    for (int i = 0; i < 3; ++i) preemption.preempt(b.run(4, 4), PB_PREEMPT_RECOMPUTE);
    ASSERT_EQ(b.waiting().size(), 3u);
    EXPECT_FALSE(b.admission.is_full());
    b.wait(4);
    EXPECT_FALSE(b.admission.is_full());
    b.sequences.add(sequence(b.next_id++, 4));
    EXPECT_TRUE(b.admission.is_full_by(b.context.now_ns)) << "that one has arrived";
    b.admission.admit();
    EXPECT_TRUE(b.admission.is_full());
    EXPECT_THAT(b.admission.take_refused(), IsEmpty());
    Sequence& runs_again = *b.sequences.find(b.waiting()[0]);
    b.admission.leave(runs_again);
    EXPECT_TRUE(b.admission.is_full()) << "it took none";
}

TEST(Admission, TakesOneThatComesBackBeforeAllOthersAlsoIntoAFullQueue) {
    Bench b(1);
    Sequence &first = b.arrive(1), &second = b.arrive(1);
    b.part.leave(first);
    b.part.put_last(first);
    b.part.leave(first);
    b.sequences.run(first);
    b.part.leave(second);
    b.part.put_last(second);
    b.part.leave(first);
    b.part.put_first(first);
    EXPECT_THAT(b.waiting(), ElementsAre(first.id, second.id));
    EXPECT_THAT(b.policy.arrived, ElementsAre(first.id, second.id)) << "each once";
}

TEST(Admission, OneThatLeavesIsInNoPlaceAndItsPrefixIsNotWatched) {
    World w;
    w.caching = kv::PrefixCaching::kOn;
    QueueNeighbours b(std::move(w));
    Sequence& s = b.wait(9);
    b.hints.update();
    EXPECT_EQ(b.kv.prefixes().watched().count(), 1u);
    b.admission.leave(s);
    EXPECT_EQ(b.kv.prefixes().watched().count(), 0u);
    EXPECT_EQ(s.place, Place::kHeld);
    EXPECT_THAT(b.waiting(), IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::admission_test
