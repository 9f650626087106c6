// `at:` of an experiment: another component takes a slot in mid-run. Read with the specification, checked against the
// installed plugins with the prepared, prepared before a run and posted as it begins.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "experiment/record.hpp"
#include "experiment/spec.hpp"
#include "experiment/workload.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "host/swap.hpp"

namespace patchbay::experiment {

// A map or a list of maps; faults at the keys and values that they are about.
std::vector<TimedSwap> read_timed_swaps(const config::Node& given, config::Faults&);

struct SwapTask { // whose plugin is installed, with all its settings
    TimedSwap timed;
    config::PluginChoice choice;

    std::string text() const; // "scheduler sjf (ageing=50) once 200 requests have arrived"
};
std::vector<SwapTask> swap_tasks(const std::vector<TimedSwap>&, const host::Registry&, config::Faults&);

// Those of one run.
class RunSwaps {
  public:
    // Everything that can be done before the run; the failure is the first refusal.
    // Those of one item of `at` succeed or fail together.
    static Result<RunSwaps> prepare(engine::Engine&, const std::vector<SwapTask>&, const host::Registry&,
                                    host::Prober&);
    // start_ns: of the run, on the engine's clock.
    void post(uint64_t start_ns, const Requests&);
    // What they bring in: libraries of plugins, and of models the checkpoints too.
    const std::vector<host::Identity>& brought_in() const { return brought_in_; }
    // What became of them, after the run; what was not meant to become of them as faults.
    void write(RunRecord&) const;

  private:
    explicit RunSwaps(engine::Engine& engine) : engine_(&engine) {}

    engine::Engine* engine_;
    uint64_t start_ns_ = 0;
    std::vector<SwapTask> tasks_;
    std::vector<host::Identity> brought_in_;
    std::vector<std::vector<std::shared_ptr<host::Swap>>> swaps_; // of tasks_, in groups that succeed or fail together
};

}  // namespace patchbay::experiment
