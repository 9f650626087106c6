#include "engine/request/waiting_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace patchbay::engine::waiting_queue_test {
namespace {

pb_sequence with_id(uint64_t id) {
    pb_sequence s{};
    s.id = id;
    return s;
}

TEST(WaitingQueue, PreemptedOnesComeInFront) {
    WaitingQueue q;
    q.push_back(with_id(1));
    q.push_back(with_id(2));
    q.push_front(with_id(9));
    ASSERT_EQ(q.records().size(), 3u);
    EXPECT_EQ(q.records()[0].id, 9u);
    EXPECT_EQ(q.records()[1].id, 1u);
}

TEST(WaitingQueue, CountsThePreemptedOnesThatWait) {
    pb_sequence preempted = with_id(9);
    preempted.flags = PB_SEQ_PREEMPTED;
    WaitingQueue q;
    const QueueTicket other = q.push_back(with_id(1)), first = q.push_front(preempted);
    q.push_front(with_id(2)); // as a further output, which has not run
    EXPECT_EQ(q.preempted(), 1u);
    q.replace(other, preempted);
    EXPECT_EQ(q.preempted(), 2u);
    q.replace(other, with_id(1));
    q.erase(other);
    EXPECT_EQ(q.preempted(), 1u);
    q.erase(first);
    EXPECT_EQ(q.preempted(), 0u);
}

TEST(WaitingQueue, AgreesWithAPlainListUnderRandomUse) {
    std::mt19937 random(7);
    WaitingQueue q;
    std::deque<std::pair<uint64_t, QueueTicket>> plain;
    uint64_t next = 0;
    for (int i = 0; i < 20000; ++i) {
        const auto what = random() % 5;
        if (what < 2) plain.emplace_back(next, q.push_back(with_id(next))), ++next;
        else if (what == 2) plain.emplace_front(next, q.push_front(with_id(next))), ++next;
        else if (!plain.empty()) {
            const auto at = plain.begin() + static_cast<ptrdiff_t>(random() % plain.size());
            q.erase(at->second);
            plain.erase(at);
        }
        ASSERT_EQ(q.records().size(), plain.size());
        for (size_t k = 0; k < plain.size() && i % 100 == 0; ++k) ASSERT_EQ(q.records()[k].id, plain[k].first);
    }
}

}  // namespace
}  // namespace patchbay::engine::waiting_queue_test
