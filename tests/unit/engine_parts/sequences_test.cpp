// Where sequences are: one place at a time, in order.
#include "engine/request/sequences.hpp"

#include <gtest/gtest.h>

#include "kv/cached_prefix.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::sequences_test {
namespace {

std::vector<RequestId> waiting(const Sequences& all) {
    std::vector<RequestId> out;
    for (const pb_sequence& r : all.waiting().records()) out.push_back(r.id);
    return out;
}

Sequence& add(Sequences& all, RequestId id, uint64_t arrival_ns, uint32_t prompt_tokens = 4) {
    auto made = sequence(id, prompt_tokens);
    request_of(*made).arrival_ns = arrival_ns;
    return all.add(std::move(made));
}

TEST(Sequences, ArriveInTheOrderOfTheirTimes) {
    Sequences all;
    add(all, 1, 30);
    add(all, 2, 10);
    add(all, 3, 20);
    EXPECT_EQ(all.arrived_by(20, 9), 2u);
    EXPECT_EQ(all.arrived_by(20, 1), 1u) << "it looks no further";
    EXPECT_EQ(all.arrived_by(20, 0), 0u);
    EXPECT_EQ(all.next_arrived(5), nullptr);
    EXPECT_EQ(all.next_arrived(20)->id, 2u);
    EXPECT_EQ(all.next_arrived(20)->id, 3u);
    EXPECT_EQ(all.next_arrived(20), nullptr);
    EXPECT_EQ(all.pending().size(), 1u);
}

TEST(Sequences, CountTheTokensThatWait) {
    Sequences all;
    Sequence& a = add(all, 1, 0, 4);
    Sequence& b = add(all, 2, 0, 6);
    for (Sequence* s : {&a, &b}) {
        all.leave(*s);
        all.wait_last(*s, record_of(*s, {}, 16));
    }
    EXPECT_EQ(all.waiting_tokens(), 10u);
    EXPECT_EQ(waiting(all), (std::vector<RequestId>{1, 2}));
    all.run(a);
    EXPECT_EQ(all.waiting_tokens(), 6u);
    EXPECT_EQ(all.running().size(), 1u);
    a.tokens.push_back(7); // preempted with a token of its own, and a draft, which does not wait
    a.tokens.push_back(8);
    a.drafts = 1;
    all.leave(a);
    all.wait_first(a, record_of(a, {}, 16));
    EXPECT_EQ(all.waiting_tokens(), 11u);
    EXPECT_EQ(waiting(all), (std::vector<RequestId>{1, 2}));
    EXPECT_TRUE(all.running().empty());
}

TEST(Sequences, LeaveWhateverPlaceTheyHave) {
    Sequences all;
    Sequence& pending = add(all, 1, 50);
    Sequence& running = add(all, 2, 0);
    all.run(running);
    all.leave(pending);
    all.leave(running);
    EXPECT_TRUE(all.pending().empty());
    EXPECT_TRUE(all.running().empty());
    EXPECT_EQ(running.place, Place::kHeld);
    EXPECT_EQ(all.remove(1)->id, 1u);
    EXPECT_EQ(all.remove(1), nullptr);
    EXPECT_EQ(all.find(2), &running);
}

}  // namespace
}  // namespace patchbay::engine::testing::sequences_test
