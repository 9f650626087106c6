// The model's slot over what exchanges it: a checkpoint that is there, weights that are a number each.
#include "engine/swap/model_swaps.hpp"

#include <gmock/gmock.h>

#include "engine/facts.hpp"
#include "engine/placement/recomputation.hpp"
#include "engine/swap/swap_control.hpp"
#include "engine/swap/swaps.hpp"
#include "engine/swap/together.hpp"
#include "execution/model_exchange.hpp"
#include "unit/engine_parts/step_neighbours.hpp"
#include "unit/engine_parts/built_plugins.hpp"

namespace patchbay::engine::testing::model_swaps_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class FakeExchange final : public execution::ModelExchange {
  public:
    std::string load_fault, use_fault;
    bool fits = true;
    uint64_t in_use = 1000, next = 1; // weights, by their bytes
    std::vector<uint64_t> released;
    const host::Component* used = nullptr;

    std::unique_ptr<host::Component> give() override { return play<FakeSampler>(kFakeSampler).component; }
    Result<> check(const host::Component&, const execution::ModelChoice&) const override {
        if (fits) return {};
        return fail(StatusCode::kUnsupported, "its layers keep other KV");
    }
    Result<std::unique_ptr<runner::LoadedWeights>> load(const host::Component&, const execution::ModelChoice&,
                                                        const execution::WeightFiles&,
                                                        const runner::BetweenSteps&) override {
        if (!load_fault.empty()) return fail(StatusCode::kExhausted, load_fault);
        auto out = std::make_unique<runner::LoadedWeights>();
        out->bytes = next++;
        out->form = "of " + std::to_string(out->bytes);
        return out;
    }
    Result<> use(const host::Component& c, runner::LoadedWeights& w) override {
        if (!use_fault.empty()) return fail(use_fault);
        used = &c;
        std::swap(in_use, w.bytes);
        return {};
    }
    void release(runner::LoadedWeights& w) override { released.push_back(w.bytes); }
};

struct Bench : RowNeighbours {
    Bench() {
        plugins = {named("model", "fake")};
        facts.model.identity = "the first one's";
        facts.model.weight_bytes = 1000;
        executor.source = execution::TokenSource::kModel;
        computed = &run(8, 8);
    }
    execution::Executor& with_exchange() {
        executor.model_exchange = &exchange;
        return executor;
    }
    std::shared_ptr<host::Swap> prepare(const std::string& path = kSourceDir + std::string("/models/demo-target")) {
        const config::PluginChoice choice{path, {}};
        return part->prepare({choice, built_plugins(), prober(), services, 0}, [&](const std::function<void()>& f) {
            f();
            return true;
        });
    }
    void enter(const std::shared_ptr<host::Swap>& swap) {
        ASSERT_EQ(swap->record().state, host::SwapState::kReady) << swap->record().text();
        part->slot().line().post(swap);
        swaps->at_boundary(false);
    }
    bool is_computed_anew() const { return computed->place == Place::kWaiting && computed->computed == 0; }

    Sequence* computed = nullptr;
    host::Services services;
    config::EngineConfig config;
    EngineFacts facts;
    FakeExchange exchange;
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
    Recomputation recomputation{sequences, kv, hints, preemption, prompt_logprobs, facts};
    std::unique_ptr<ModelSwaps> part = std::make_unique<ModelSwaps>(
        ModelSwaps::Parts{config, facts, with_exchange(), recomputation, clock, context, journal});
    config::SwapSettings swap_settings{.probation_steps = 1, .max_call_ms = 0};
    std::unique_ptr<Swaps> swaps = std::make_unique<Swaps>(
        Swaps::Parts{swap_settings, {part.get()}, journal, context, clock});
};

TEST(ModelSwaps, OneThatEntersComputesAllAnewWithItsWeights) {
    Bench b;
    b.enter(b.prepare());
    EXPECT_EQ(b.exchange.used, &b.part->slot().current());
    EXPECT_EQ(b.exchange.in_use, 1u);
    EXPECT_TRUE(b.is_computed_anew());
    EXPECT_EQ(b.facts.model.weight_bytes, 1u);
    EXPECT_EQ(b.facts.model.weight_dtype, "of 1");
    EXPECT_NE(b.facts.model.identity, "the first one's");
    EXPECT_THAT(b.exchange.released, IsEmpty()) << "the first one may come back";
    b.swaps->end_step({true, true});
    EXPECT_THAT(b.exchange.released, ElementsAre(1000)) << "it was committed";
}

TEST(ModelSwaps, OneThatIsRolledBackLeavesTheFirstOneAsItWas) {
    Bench b;
    b.enter(b.prepare());
    Sequence& s = b.run(6, 6); // by the one on probation
    EXPECT_TRUE(b.swaps->recover(fail("it cannot add")));
    EXPECT_EQ(b.exchange.in_use, 1000u);
    EXPECT_EQ(b.exchange.used, &b.part->slot().current());
    EXPECT_EQ(b.facts.model.identity, "the first one's");
    EXPECT_EQ(s.computed, 0u);
    b.swaps.reset();
    b.part.reset();
    EXPECT_THAT(b.exchange.released, ElementsAre(1));
}

TEST(ModelSwaps, OneThatCannotBeUsedChangesNothing) {
    Bench b;
    b.exchange.use_fault = "no room";
    b.enter(b.prepare());
    ASSERT_EQ(b.report().swaps.size(), 2u);
    EXPECT_EQ(b.report().swaps[1].state, host::SwapState::kRolledBack);
    EXPECT_EQ(b.report().swaps[1].phase, "use");
    EXPECT_THAT(b.report().swaps[1].reason, HasSubstr("no room"));
    EXPECT_EQ(b.facts.model.identity, "the first one's");
    EXPECT_EQ(b.facts.model.weight_bytes, 1000u);
    EXPECT_FALSE(b.is_computed_anew());
    EXPECT_EQ(b.exchange.in_use, 1000u);
}

TEST(ModelSwaps, WeightsThatNoOneUsesAreReleasedBetweenSteps) {
    Bench b;
    auto dropped = b.prepare();
    EXPECT_EQ(dropped->record().state, host::SwapState::kReady);
    dropped.reset(); // before it entered
    EXPECT_THAT(b.exchange.released, IsEmpty()) << "not on the thread that dropped it";
    auto kept = b.prepare();
    EXPECT_THAT(b.exchange.released, ElementsAre(1));
    b.swaps.reset();
    b.part.reset();
    EXPECT_THAT(b.exchange.released, UnorderedElementsAre(1, 2)) << "and all with the slot";
}

TEST(ModelSwaps, WeightsThatNoOneUsesLeaveTheirRoomToTheNext) {
    Bench b;
    b.prepare(); // and dropped
    b.exchange.load_fault = "too few bytes are free";
    EXPECT_EQ(b.prepare()->record().phase, "load");
    EXPECT_THAT(b.exchange.released, ElementsAre(1)) << "before others are loaded";
}

TEST(ModelSwaps, WeightsOfATransactionThatIsRefusedAreReleased) {
    Bench b;
    FakeSwapPort other{b.clock, b.context, b.journal};
    SwapControl control{{b.config, b.services, {&other, &other, &other, &other, &other, b.part.get()}, *b.part,
                         b.swaps->transactions()}};
    const auto request = [](SwapSlot slot, const std::string& name) {
        return SwapRequest{.slot = slot, .choice = {name, {}}, .registry = built_plugins(), .prober = prober()};
    };
    const auto swaps =
        control.prepare_together({request(SwapSlot::kModel, kSourceDir + std::string("/models/demo-target")),
                                  request(SwapSlot::kSampler, "absent")});
    EXPECT_EQ(swaps[0]->record().phase, kTogether);
    EXPECT_EQ(swaps[1]->record().phase, "find");
    EXPECT_THAT(b.exchange.released, ElementsAre(1));
}

TEST(ModelSwaps, ARefusalSaysInWhichPhaseAndWhy) {
    Bench b;
    const host::SwapRecord absent = b.prepare("/nowhere")->record();
    EXPECT_EQ(absent.state, host::SwapState::kRefused);
    EXPECT_EQ(absent.phase, "find");
    EXPECT_EQ(absent.reason, "there is no such folder or file");
    EXPECT_EQ(absent.code, StatusCode::kNotFound);
    EXPECT_EQ(absent.to.name, "/nowhere");
    b.exchange.load_fault = "too few bytes are free";
    const host::SwapRecord large = b.prepare()->record();
    EXPECT_EQ(large.phase, "load");
    EXPECT_EQ(large.reason, "too few bytes are free");
    EXPECT_EQ(large.code, StatusCode::kExhausted);
}

TEST(ModelSwaps, OnlyOtherKvNeedsANewEngine) {
    Bench b;
    const std::string demo = kSourceDir + std::string("/models/demo-target");
    const auto needs = [&](const std::string& path) {
        const config::PluginChoice choice{path, {}};
        return b.part->needs_new_engine({choice, built_plugins(), prober(), b.services, 0});
    };
    EXPECT_FALSE(needs(demo));
    b.exchange.fits = false;
    EXPECT_TRUE(needs(demo));
    EXPECT_FALSE(needs("/nowhere")) << "which prepare() explains";
}

TEST(ModelSwaps, WhereNoModelComputesThereIsNoSwap) {
    Bench b;
    EXPECT_TRUE(b.part->takes_swaps());
    b.executor.source = execution::TokenSource::kMadeUp;
    EXPECT_THAT(b.part->takes_swaps().error(), HasSubstr("no weights are loaded"));
    b.executor.model_exchange = nullptr;
    ModelSwaps none({b.config, b.facts, b.executor, b.recomputation, b.clock, b.context, b.journal});
    EXPECT_THAT(none.takes_swaps().error(), HasSubstr("no model to exchange"));
    EXPECT_FALSE(none.slot().filled());
}

}  // namespace
}  // namespace patchbay::engine::testing::model_swaps_test
