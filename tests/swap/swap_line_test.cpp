// The line before a slot, without a slot: who is next, who is turned away, and what is heard of it.
#include "host/swap_line.hpp"

#include <gmock/gmock.h>

#include "base/refusals.hpp"

namespace patchbay::host::swap_line_test {
namespace {

using ::testing::HasSubstr;

Identity named(const char* name) {
    Identity out;
    out.kind = "scheduler";
    out.name = name;
    return out;
}

class SwapLineTest : public ::testing::Test {
  protected:
    SwapLineTest() { line.replace_holder(named("one")); }
    std::shared_ptr<Swap> post(const char* name, uint64_t not_before_ns = 0, uint64_t transaction = 0) {
        auto swap = line.prepare(nullptr, named(name), transaction);
        line.post(swap, not_before_ns);
        return swap;
    }

    VirtualClock clock;
    SwapLine line{"scheduler", clock};
};

TEST_F(SwapLineTest, IsLeftInTheOrderInWhichItWasEntered) {
    EXPECT_FALSE(line.due());
    const auto first = post("two"), second = post("three", 0, 7);
    EXPECT_EQ(line.due(), 0u);
    EXPECT_EQ(line.pop(), first);
    EXPECT_EQ(line.due(), 7u) << "the transaction of the next one";
    EXPECT_EQ(line.pop(), second);
    EXPECT_FALSE(line.due());
}

TEST_F(SwapLineTest, WaitsForTheTimeOfTheFirst) {
    post("later", 500);
    post("now");
    EXPECT_FALSE(line.due()) << "the second one does not overtake the first";
    clock.advance_ns(500);
    EXPECT_EQ(line.due(), 0u);
}

TEST_F(SwapLineTest, HasRoomForSoMany) {
    for (size_t i = 0; i < SwapLine::kMaxPendingSwaps; ++i) EXPECT_EQ(post("two")->record().state, SwapState::kPosted);
    const SwapRecord refused = post("two")->record();
    EXPECT_EQ(refused.text(), "swap scheduler one→two: refused in phase post: 64 swaps are in line already");
    EXPECT_EQ(refused.code, StatusCode::kExhausted) << "later there is room";
}

TEST_F(SwapLineTest, RefusesWhatAnotherOneHasPrepared) {
    SwapLine other("scheduler", clock);
    const auto swap = other.prepare(nullptr, named("two"));
    line.post(swap);
    EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase post: it was prepared for another engine"));
    EXPECT_EQ(swap->record().code, StatusCode::kInvalid);
    EXPECT_FALSE(line.due());
}

TEST_F(SwapLineTest, IsLeftByWhatIsWithdrawnOnce) {
    const auto swap = post("two");
    line.withdraw(swap, "together", not_found("the other one was refused"));
    EXPECT_EQ(swap->record().text(), "swap scheduler one→two: refused in phase together: the other one was refused");
    EXPECT_FALSE(line.due());
    EXPECT_EQ(line.take_reports().size(), 1u);
    EXPECT_EQ(swap->record().code, StatusCode::kNotFound);
    line.withdraw(swap, "together", fail("again"));
    EXPECT_EQ(swap->record().reason, "the other one was refused");
    EXPECT_TRUE(line.take_reports().empty());
}

TEST_F(SwapLineTest, DoesNotTakeBackWhatIsUnderWay) {
    post("two");
    const auto under_way = line.pop();
    line.withdraw(under_way, "together", fail("too late"));
    EXPECT_EQ(under_way->record().state, SwapState::kPosted);
}

TEST_F(SwapLineTest, SaysWhoHeldTheSlotWhenASwapWasAskedFor) {
    const auto before = line.refuse(named("absent"), "find", fail("there is none"));
    EXPECT_EQ(line.replace_holder(named("two")).name, "one");
    const auto after = line.refuse(named("absent"), "find", fail("there is none"));
    EXPECT_EQ(before->record().from.name, "one");
    EXPECT_EQ(after->record().from.name, "two");
}

TEST_F(SwapLineTest, KeepsABoundedNumberOfReports) {
    for (int i = 0; i < 100; ++i) line.refuse(named("absent"), "find", fail("there is none"));
    EXPECT_EQ(line.take_reports().size(), 64u);
    EXPECT_TRUE(line.take_reports().empty());
}

TEST_F(SwapLineTest, OfASettledSwapIsHeardThroughItsRecord) {
    post("two");
    std::shared_ptr<Swap> swap = line.pop();
    const std::weak_ptr<Swap> watched = swap;
    const SwapRecord r = line.settle(swap, [](SwapRecord& record, Identity& holder) {
        record.end(SwapState::kRolledBack, "plan", fail("scheduler 'two': plan: on purpose"));
        holder.name = "three";
    });
    EXPECT_EQ(r.reason, "on purpose");
    EXPECT_EQ(swap, nullptr);
    EXPECT_FALSE(watched.expired()) << "another thread lets go of it";
    line.prepare(nullptr, named("next"));
    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(line.replace_holder({}).name, "three");
}

}  // namespace
}  // namespace patchbay::host::swap_line_test
