#include "service/inbox.hpp"

#include <gmock/gmock.h>

namespace patchbay::service::inbox_test {
namespace {

Inbox::Arrival arrival() { return {{}, std::make_shared<Stream>(1, 4, nullptr)}; }

TEST(Inboxes, HoldAtMostSoManyArrivals) {
    Inbox inbox(2);
    EXPECT_TRUE(inbox.add(arrival()));
    EXPECT_TRUE(inbox.add(arrival()));
    const auto third = inbox.add(arrival());
    ASSERT_FALSE(third);
    EXPECT_EQ(third.code(), StatusCode::kExhausted);
    EXPECT_EQ(third.error(), "2 requests wait for the step under way to end, expected at most 2");
    EXPECT_EQ(inbox.arrivals(), 2u);
    inbox.take();
    EXPECT_TRUE(inbox.add(arrival()));
}

TEST(Inboxes, GiveEachThingOnce) {
    Inbox inbox(4);
    EXPECT_TRUE(inbox.empty());
    const Inbox::Arrival first = arrival(), second = arrival();
    EXPECT_TRUE(inbox.add(first));
    EXPECT_TRUE(inbox.add(second));
    inbox.add_task([] {});
    inbox.want_boundary();
    EXPECT_FALSE(inbox.empty());
    const Inbox::Contents taken = inbox.take();
    ASSERT_EQ(taken.arrivals.size(), 2u);
    EXPECT_EQ(taken.arrivals[0].stream, first.stream);
    EXPECT_EQ(taken.arrivals[1].stream, second.stream);
    EXPECT_EQ(taken.tasks.size(), 1u);
    EXPECT_TRUE(taken.wants_boundary);
    EXPECT_TRUE(inbox.empty());
    EXPECT_FALSE(inbox.take().wants_boundary);
}

TEST(Inboxes, HoldArrivalsThatComeLater) {
    Inbox inbox(8);
    const Inbox::Arrival first = arrival(), removed = arrival(), held = arrival();
    EXPECT_TRUE(inbox.add(first));
    EXPECT_TRUE(inbox.add(removed));
    inbox.hold_arrivals();
    EXPECT_TRUE(inbox.add(held));
    EXPECT_TRUE(inbox.add(arrival()));
    EXPECT_TRUE(inbox.remove(*removed.stream));
    inbox.add_task([] {});
    inbox.want_boundary();
    EXPECT_TRUE(inbox.has_unheld());
    const Inbox::Contents taken = inbox.take_but_held();
    ASSERT_EQ(taken.arrivals.size(), 1u);
    EXPECT_EQ(taken.arrivals[0].stream, first.stream);
    EXPECT_EQ(taken.tasks.size(), 1u);
    EXPECT_TRUE(taken.wants_boundary);
    EXPECT_FALSE(inbox.has_unheld());
    EXPECT_EQ(inbox.arrivals(), 2u);
    EXPECT_TRUE(inbox.take_but_held().arrivals.empty());
    const Inbox::Contents rest = inbox.take();
    ASSERT_EQ(rest.arrivals.size(), 2u);
    EXPECT_EQ(rest.arrivals[0].stream, held.stream);
}

TEST(Inboxes, LoseAnArrivalThatIsRemoved) {
    Inbox inbox(4);
    const Inbox::Arrival kept = arrival(), removed = arrival();
    EXPECT_TRUE(inbox.add(kept));
    EXPECT_TRUE(inbox.add(removed));
    EXPECT_TRUE(inbox.remove(*removed.stream));
    EXPECT_FALSE(inbox.remove(*removed.stream));
    EXPECT_EQ(inbox.take().arrivals.at(0).stream, kept.stream);
}

TEST(Inboxes, HaveSomethingToDoForEachReasonAlone) {
    Inbox arrived(1), boundary(1), task(1), stopped(1);
    EXPECT_TRUE(arrived.add(arrival()));
    boundary.want_boundary();
    task.add_task([] {});
    stopped.stop();
    for (const Inbox* inbox : {&arrived, &boundary, &task, &stopped}) EXPECT_FALSE(inbox->empty());
    stopped.take();
    EXPECT_TRUE(stopped.stopping()); // for good
    EXPECT_FALSE(stopped.empty());
}

}  // namespace
}  // namespace patchbay::service::inbox_test
