// Swaps as a caller orders them, over slots that a test says all of.
#include "engine/swap/swap_control.hpp"

#include <gmock/gmock.h>

#include "base/refusals.hpp"
#include "engine/swap/together.hpp"
#include "unit/engine_parts/swap_neighbours.hpp"

namespace patchbay::engine::testing::swap_control_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using host::SwapState;

struct Bench : SwapNeighbours {
    SwapControl part{{config, services, {&first, &second, &other, &other, &other, &model}, model, transactions}};
};

TEST(SwapControl, OneThatIsPreparedIsReadyAndWaitsOnceItIsPosted) {
    Bench b;
    const auto swap = b.part.prepare(b.request(SwapSlot::kScheduler, "fcfs"));
    const host::SwapRecord ready = swap->record();
    EXPECT_EQ(ready.state, SwapState::kReady) << ready.text();
    EXPECT_EQ(ready.kind, "scheduler");
    EXPECT_EQ(ready.to.name, "fcfs");
    EXPECT_EQ(ready.to.sha256.size(), 64u);
    EXPECT_EQ(b.first.slot().due(), std::nullopt);
    b.part.post(swap, 1'000);
    EXPECT_EQ(b.first.slot().due(), std::nullopt) << "not before that time";
    b.clock.advance_ns(1'000);
    EXPECT_EQ(b.first.slot().due(), 0u);
}

TEST(SwapControl, APluginThatIsNotThereOrNotAllowedIsRefused) {
    Bench b;
    const host::SwapRecord absent = b.part.prepare(b.request(SwapSlot::kScheduler, "absent"))->record();
    EXPECT_EQ(absent.state, SwapState::kRefused);
    EXPECT_EQ(absent.phase, "find");
    EXPECT_THAT(absent.reason, HasSubstr("absent"));
    EXPECT_EQ(absent.code, StatusCode::kNotFound);
    b.config.allowed_plugins.emplace(); // and none is in it
    const host::SwapRecord forbidden = b.part.prepare(b.request(SwapSlot::kScheduler, "fcfs"))->record();
    EXPECT_EQ(forbidden.state, SwapState::kRefused);
    EXPECT_EQ(forbidden.phase, "find");
    EXPECT_EQ(forbidden.code, StatusCode::kInvalid);
}

TEST(SwapControl, SettingsThatThePluginDoesNotHaveAreRefused) {
    Bench b;
    SwapRequest r = b.request(SwapSlot::kScheduler, "fcfs");
    r.choice.settings["no_such_key"] = "1";
    const host::SwapRecord refused = b.part.prepare(r)->record();
    EXPECT_EQ(refused.phase, "create");
    EXPECT_THAT(refused.reason, HasSubstr("no_such_key"));
    EXPECT_EQ(refused.code, StatusCode::kInvalid);
}

TEST(SwapControl, WhereOneIsRefusedNoneOfThemIsReady) {
    Bench b;
    for (const bool first_is_absent : {true, false}) {
        const auto swaps =
            b.part.prepare_together({b.request(SwapSlot::kScheduler, first_is_absent ? "absent" : "fcfs"),
                                     b.request(SwapSlot::kSampler, first_is_absent ? "standard" : "absent")});
        ASSERT_THAT(swaps, SizeIs(2));
        const host::SwapRecord bad = swaps[first_is_absent ? 0 : 1]->record();
        const host::SwapRecord good = swaps[first_is_absent ? 1 : 0]->record();
        EXPECT_EQ(bad.phase, "find");
        EXPECT_EQ(good.state, SwapState::kRefused);
        EXPECT_EQ(good.phase, kTogether);
        EXPECT_EQ(good.reason, failed_by(bad).text);
        EXPECT_EQ(good.code, StatusCode::kNotFound) << "as the one that made it fail";
        EXPECT_GT(good.transaction, 0u);
        EXPECT_EQ(good.transaction, bad.transaction);
        b.part.post_together(swaps);
        b.transactions.at_boundary(false);
        EXPECT_EQ(b.first.entered + b.second.entered, 0);
    }
}

TEST(SwapControl, ThoseThatAreAllReadyEnterTogether) {
    Bench b;
    const auto swaps = b.part.prepare_together({b.request(SwapSlot::kScheduler, "fcfs"),
                                                b.request(SwapSlot::kSampler, "standard")});
    b.part.post_together(swaps);
    b.transactions.at_boundary(false);
    EXPECT_EQ(b.first.entered, 1);
    EXPECT_EQ(b.second.entered, 1);
}

TEST(SwapControl, ASlotIsNamedOnceInATransaction) {
    Bench b;
    const auto swaps = b.part.prepare_together({b.request(SwapSlot::kScheduler, "fcfs"),
                                                b.request(SwapSlot::kScheduler, "fcfs")});
    EXPECT_THAT(swaps[0]->record().reason, HasSubstr("named twice"));
    EXPECT_EQ(swaps[0]->record().code, StatusCode::kInvalid);
    EXPECT_EQ(swaps[1]->record().state, SwapState::kRefused);
}

TEST(SwapControl, OneThatWasRefusedElsewhereIsRecorded) {
    Bench b;
    const host::SwapRecord r = b.part.refuse(named("sampler", "x"), "find", invalid("it is not a name"))->record();
    EXPECT_EQ(r.state, SwapState::kRefused);
    EXPECT_EQ(r.reason, "it is not a name");
    EXPECT_EQ(r.code, StatusCode::kInvalid);
    EXPECT_THAT(b.second.slot().line().take_reports(), SizeIs(1)) << "for the next step's report";
}

}  // namespace
}  // namespace patchbay::engine::testing::swap_control_test
