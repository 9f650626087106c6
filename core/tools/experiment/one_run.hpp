// One run of one variant, on an engine of its own. The same in the process of the experiment and in one that was
// started for it.
#pragma once
#include <sys/types.h>

#include <functional>

#include "engine/trace/step_file_paths.hpp"
#include "experiment/drive.hpp"
#include "experiment/matrix.hpp"
#include "experiment/prepared_variants.hpp"
#include "experiment/record.hpp"
#include "experiment/run_control.hpp"
#include "experiment/workload.hpp"
#include "host/prober.hpp"
#include "parallel/world.hpp"

namespace patchbay::experiment {

// Follows a run as it happens: metrics and progress.
class RunListener : public host::MetricSink {
  public:
    virtual bool wants_metrics() const = 0; // else only the rows and the two that follow are called
    virtual void on_engine(const engine::EngineFacts&) = 0; // the run begins
    virtual void on_progress(size_t finished, size_t of) = 0; // requests, after each step
    virtual void on_request(engine::RequestId, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) = 0;
    virtual void on_output(const engine::RequestOutput&) = 0;
    virtual void on_step(const engine::StepReport&) = 0;
    virtual void on_rows(Rows) = 0; // some at a time, whether metrics are wanted or not; they are not in the record
};

struct RunSurroundings {
    const ExperimentSpec& spec;
    const host::Registry& registry;
    host::Prober& prober;
    Clock& clock;
    parallel::World& world;
    std::function<bool()> interrupted; // empty: never
    MakeRunControl make_control{};     // empty: none
    ControlChoice control{};
    std::vector<std::string> plugin_dirs{}; // of what is brought in by it
    pid_t keeper = 0; // the process that stores what happens; 0: this one
};

struct RanOnce {
    RunRecord record;
    LoadedParts loaded{};
};

void place(RunRecord&, const RunSlot&); // in the order of runs

// Where the workload comes from, once the engine is there.
using SourceOf = std::function<Result<const WorkloadSource*>(const engine::Engine&)>;

Result<RanOnce> run_once(const RunSurroundings&, const PreparedVariant&, const SourceOf&, const RunSlot&, RunListener&,
                         const engine::StepFilePaths& = {});

// What is loaded in a run must be what was loaded when the experiment began.
std::vector<std::string> changes(const PreparedVariant& then, const LoadedParts& now);

}  // namespace patchbay::experiment
