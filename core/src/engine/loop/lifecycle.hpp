// How sequences end: what each part holds of them is given back, and their last delta is closed.
#pragma once

#include "engine/groups/beams.hpp"
#include "engine/output/outputs.hpp"
#include "engine/output/pooling.hpp"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay {
class Clock;
}

namespace patchbay::engine {

class Aborts;
class Admission;
class Constraints;
class DraftFeedback;
class InFlightSteps;
class PrefixHints;
class PromptLogprobs;
class SchedulerPort;
class Siblings;
struct StepContext;

class Lifecycle {
  public:
    struct Parts {
        Sequences& sequences;
        kv::KvCache& kv;
        Admission& admission;
        SchedulerPort& scheduler;
        PrefixHints& hints;
        Siblings& siblings;
        BeamSearches& beams;
        InFlightSteps& in_flight;
        Outputs& outputs;
        Constraints& constraints;
        PromptLogprobs& prompt_logprobs;
        Pooling& pooling;
        Surprisals& surprisals;
        DraftFeedback& drafting;
        Aborts& aborts;
        Clock& clock;
        StepContext& context;
    };
    explicit Lifecycle(const Parts& parts) : p_(parts) {}

    void begin_step() { in_step_ = true; }
    void end_step(); // requests that were refused or aborted within it end
    bool in_step() const { return in_step_; }

    // Within a step or without: it stays among the sequences until its delta is handed out.
    void finish(Sequence&, Ending);
    // What it held until it had computed the prompt; they wait from admit_released() on, in the order of all releases.
    void release_siblings(const Sequence& first);
    void admit_released();
    // Between steps: all sequences of a request, each with its last delta.
    void end(RequestId, const Ending&);
    void abort(RequestId);                        // between steps at once; within one, with it
    void fail_all(const Failure& of_step);        // the engine cannot go on, and the executor computes nothing

  private:
    void end_one(Sequence&, const Ending&);

    const Parts p_;
    std::vector<Sequence*> released_; // siblings, until admit_released()
    bool in_step_ = false;
};

}  // namespace patchbay::engine
