// Swaps one after another, of an engine whose steps a test plays.
#include "serve/live_swaps.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/slot.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::live_swaps_test {
namespace {

using engine::SwapSlot;
using host::SwapState;

constexpr uint64_t kProbation = 4;

host::Identity named(std::string_view kind) { return {.kind = std::string(kind), .name = "any"}; }

// Each swap is posted, and takes its slot at once where none is on probation there.
class PlayedEngine final : public service::LiveEngine {
  public:
    service::ServiceStatus status() const override { return {}; }
    bool call(const std::function<void(engine::Engine&)>&) override { return false; }
    std::vector<std::shared_ptr<host::Swap>> swap_together(std::vector<engine::SwapRequest> requests) override {
        host::Slot& slot = requests.front().slot == SwapSlot::kSampler ? sampler_ : scheduler_;
        auto swap = slot.line().prepare(nullptr, named(name_of(requests.front().slot)));
        slot.line().post(swap);
        engine::StepReport report;
        report.queues.running_requests = 1;
        if (slot.due()) {
            slot.take();
            slot.let_in();
            report.swaps = {slot.begin_probation(step_ + 1, kProbation, 0)};
            if (&slot == &scheduler_) report.swaps.push_back(slot.commit(step_ + 1));
        }
        end_step(std::move(report));
        return {swap};
    }
    void end_step(engine::StepReport report) {
        report.step = ++step_;
        journal.on_step(report);
    }

    SlotJournal journal{{named("scheduler"), named("sampler")}, {}};

  private:
    RealClock clock_;
    host::Slot scheduler_{"scheduler", host::UnreadState::kStartsEmpty, clock_},
        sampler_{"sampler", host::UnreadState::kStartsEmpty, clock_};
    std::atomic<uint64_t> step_ = 0;
};

struct Bench {
    // How far the swap is when it is answered.
    std::future<SwapState> swap(SwapSlot slot) {
        auto answered = std::make_shared<std::promise<SwapState>>();
        auto out = answered->get_future();
        SwapOrder order{{{slot, {"next", {}}}}, registry, [answered](const Result<std::vector<host::SwapRecord>>& r) {
                            answered->set_value(r ? r->front().state : SwapState::kRefused);
                        }};
        EXPECT_TRUE(part.add(std::move(order)));
        return out;
    }
    void step() { // with a request that runs
        engine::StepReport report;
        report.queues.running_requests = 1;
        engine.end_step(std::move(report));
    }
    static bool is_known(const std::future<SwapState>& answer) {
        return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }

    std::shared_ptr<const host::Registry> registry =
        std::make_shared<const host::Registry>(engine::testing::registry());
    PlayedEngine engine;
    LiveSwaps part{engine, engine.journal, nullptr, nullptr, kProbation};
};

TEST(LiveSwaps, OneThatNoStepCallsIsAnsweredAndHoldsUpNoOther) {
    Bench b;
    auto uncalled = b.swap(SwapSlot::kSampler);
    wait_until("probation", [&] { return b.engine.journal.state().step == 1; });
    auto after = b.swap(SwapSlot::kSampler), beside = b.swap(SwapSlot::kScheduler);
    for (uint64_t i = 1; i < kProbation + LiveSwaps::kUncalledSteps; ++i) b.step();
    EXPECT_FALSE(b.is_known(uncalled)) << "it might be called yet";
    b.step();
    wait_until("answers", [&] { return b.is_known(uncalled) && b.is_known(after) && b.is_known(beside); });
    EXPECT_EQ(uncalled.get(), SwapState::kOnProbation);
    EXPECT_EQ(after.get(), SwapState::kPosted);
    EXPECT_EQ(beside.get(), SwapState::kCommitted);
}

}  // namespace
}  // namespace patchbay::serve::testing::live_swaps_test
