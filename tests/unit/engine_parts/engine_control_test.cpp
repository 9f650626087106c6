// What is in the slots of an engine: shown, changed, and handed over, over slots that a test says all of.
#include "engine/engine_control.hpp"

#include <gmock/gmock.h>

#include "engine/swap/swap_ports.hpp"
#include "unit/engine_parts/swap_neighbours.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::engine::testing::engine_control_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using host::SwapState;

struct Bench : SwapNeighbours {
    static std::vector<SwapState> reported(host::Slot& slot) {
        std::vector<SwapState> out;
        for (const host::SwapRecord& r : slot.line().take_reports()) out.push_back(r.state);
        return out;
    }

    KvPolicyPort empty{host::KvPolicy{}, kv, clock, context, journal};
    KvPolicySwaps none{empty, sequences, context};
    EngineControl part{
        {{config, services, {&first, &second, &other, &none, &other, &model}, model, transactions}, context, journal}};
};

TEST(EngineControl, ShowsTheConfigurationWithWhatIsInTheSlotsNow) {
    Bench b;
    b.config.scheduler = {"fcfs", {}};
    b.config.kv_policy = config::PluginChoice{"lru", {}};
    b.config.engine.block_size = 32;
    const config::EngineConfig now = b.part.configuration();
    EXPECT_EQ(now.scheduler.plugin, "fake");
    EXPECT_EQ(now.sampler.plugin, "fake");
    ASSERT_TRUE(now.kv_policy);
    EXPECT_EQ(now.kv_policy->plugin, "lru") << "nothing is in that slot";
    EXPECT_EQ(now.engine.block_size, 32u);
    EXPECT_EQ(b.config.scheduler.plugin, "fcfs") << "what it was made of stays";
}

TEST(EngineControl, AnEmptySlotHasNoParametersToChange) {
    Bench b;
    EXPECT_TRUE(b.part.configure(SwapSlot::kScheduler, {})) << "nothing changes";
    EXPECT_FALSE(b.part.configure(SwapSlot::kScheduler, {{"no_such", "1"}}));
    EXPECT_EQ(b.part.settings(SwapSlot::kKvPolicy), host::Settings{});
    const auto none = b.part.configure(SwapSlot::kKvPolicy, {});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error(), "the engine has no kv_policy");
    EXPECT_EQ(none.code(), StatusCode::kInvalid);
}

TEST(EngineControl, ASwapIsPreparedAndInLine) {
    Bench b;
    const auto swap = b.part.swap(Bench::request(SwapSlot::kScheduler, "fcfs"));
    EXPECT_EQ(swap->record().state, SwapState::kPosted) << swap->record().text();
    EXPECT_EQ(b.first.slot().due(), 0u);
    const auto refused = b.part.swap(Bench::request(SwapSlot::kSampler, "absent"));
    EXPECT_EQ(refused->record().state, SwapState::kRefused);
    EXPECT_EQ(b.second.slot().due(), std::nullopt);
}

TEST(EngineControl, ANewEngineNumbersItsStepsOnAndReportsTheModelThatItIs) {
    Bench b;
    host::SwapRecord record;
    record.kind = "model";
    record.step = 41;
    b.part.take_over(41, record);
    EXPECT_EQ(b.context.step, 41u);
    ASSERT_THAT(b.report().swaps, SizeIs(2));
    EXPECT_EQ(b.report().swaps[0].state, SwapState::kOnProbation);
    EXPECT_EQ(b.report().swaps[1].state, SwapState::kCommitted);
    EXPECT_THAT(Bench::reported(b.model.slot()), IsEmpty()) << "it would be reported twice";
}

TEST(EngineControl, SwapsOfTheEngineBeforeEndAndAreReportedByTheOneAfterIt) {
    Bench before, after;
    const auto on_probation = host::testing::put_on_probation(
        before.first.slot(), play<FakeSampler>(kFakeSampler).component, "scheduler", "next", 7);
    const auto in_line = before.second.post(), second_in_line = before.second.post();
    before.context.step = 8;
    after.part.end_swaps_of(before.part);
    EXPECT_EQ(on_probation->record().state, SwapState::kCommitted);
    for (const auto& swap : {in_line, second_in_line}) {
        EXPECT_EQ(swap->record().state, SwapState::kRefused);
        EXPECT_EQ(swap->record().code, StatusCode::kUnavailable);
        EXPECT_THAT(swap->record().reason, HasSubstr("replaced by one of another model"));
    }
    EXPECT_THAT(Bench::reported(after.first.slot()), ElementsAre(SwapState::kCommitted));
    EXPECT_THAT(Bench::reported(after.second.slot()), ElementsAre(SwapState::kRefused, SwapState::kRefused));
    EXPECT_THAT(Bench::reported(before.second.slot()), IsEmpty());
}

TEST(EngineControl, ASwapOfTheModelBeforeIsReportedAheadOfTheModelThatTakesOver) {
    Bench before, after;
    install<FakeSampler>(before.model.slot(), kFakeSampler);
    const auto on_probation = host::testing::put_on_probation(
        before.model.slot(), play<FakeSampler>(kFakeSampler).component, "model", "next", 7);
    after.part.end_swaps_of(before.part);
    host::SwapRecord record;
    record.kind = record.to.kind = "model";
    record.to.name = "other";
    after.part.take_over(8, record);
    EXPECT_EQ(on_probation->record().state, SwapState::kCommitted);
    ASSERT_THAT(after.report().swaps, SizeIs(3));
    EXPECT_EQ(after.report().swaps[0].to.name, "next");
    EXPECT_EQ(after.report().swaps[0].state, SwapState::kCommitted);
    EXPECT_EQ(after.report().swaps[2].to.name, "other");
    EXPECT_THAT(Bench::reported(after.model.slot()), IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::engine_control_test
