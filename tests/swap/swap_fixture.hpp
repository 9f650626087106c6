// Engines whose scheduler and sampler are swapped while they run.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "engine/engine_control.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing {

const host::Registry& swap_registry(); // the tree's plugins and those of these tests
const host::Registry& other_builds();  // the same names, built with other flags
// The same names, built by another compiler; null: there is none here.
const host::Registry* other_compiler();
host::Prober& prober();

// Gauges that components set, by their name: what a test can see of their state.
class Gauges final : public host::MetricSink {
  public:
    void add(const std::string&, const std::string&, const std::string&, double) override {}
    void set(const std::string&, const std::string& component, const std::string& name, double value) override;
    double at(const std::string& name) const; // "counting_1/plans"; 0 if it was never set

  private:
    mutable std::mutex mutex_;
    std::map<std::string, double> values_;
};

// A clock that advances with each reading, so that calls take time.
class TickingClock final : public Clock {
  public:
    explicit TickingClock(uint64_t tick_ns = 1000) : tick_ns_(tick_ns) {}
    uint64_t now_ns() const override { return now_ns_ += tick_ns_; }
    void wait_until_ns(uint64_t when_ns) override {
        if (now_ns_ < when_ns) now_ns_ = when_ns;
    }

  private:
    const uint64_t tick_ns_;
    mutable std::atomic<uint64_t> now_ns_ = 0;
};

using Texts = std::map<RequestId, std::vector<TokenId>>;

class Swapping {
  public:
    // clock: null: its own, which ticks. world: of an engine of several ranks; null: it is alone.
    explicit Swapping(const config::EngineConfig&, Clock* clock = nullptr, parallel::World* world = nullptr);

    std::shared_ptr<host::Swap> swap(SwapSlot, const config::PluginChoice&, const host::Registry& = swap_registry());
    // Eight requests of various lengths, greedy and seeded in turn, two with equal prompts; more than may run at once.
    void add_requests();
    StepReport step();
    // Steps until all have ended; `between` is called before each step.
    const Texts& run(const std::function<void()>& between = [] {});

    TickingClock ticking;
    Clock& clock;
    Gauges gauges;
    std::unique_ptr<Engine> engine;
    Texts texts;
    std::map<RequestId, uint32_t> endings; // a request must have one
    std::vector<StepReport> steps;
};

// tiny_model() on which requests wait, run in chunks and draft; `blocks` marks the engine for `faulty`.
inline constexpr uint32_t kBlocks = 509, kVocab = 300;
config::EngineConfig busy_engine(const std::string& scheduler = "fcfs", const std::string& sampler = "standard");
// The texts of its requests without a swap.
const Texts& undisturbed();
Texts greedy_undisturbed(); // with the sampler greedy

std::string name_in(const Engine&, const std::string& kind); // of the plugin in a slot
std::vector<host::SwapRecord> records(const std::vector<StepReport>&);

// The blocks that begin a chain, of those that are cached while `asked` is served.
using BlockKeys = std::set<std::pair<uint64_t, uint64_t>>;
BlockKeys first_blocks(Swapping&, const std::function<void()>& asked);

}  // namespace patchbay::engine::testing
