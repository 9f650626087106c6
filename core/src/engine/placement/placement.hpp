// A checked plan becomes pages: preemptions first, then pages in plan order. What does not fit is trimmed and counted;
// a waiting sequence for which there is no room stays where it waits.
#pragma once
#include <vector>

#include "engine/placement/placed.hpp"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::engine {

class Admission;
class BeamSearches;
class DraftKvTable;
class Preemption;
class PrefixHints;
class PressureMonitor;
class PromptLogprobs;
class SchedulerPort;
class Sequences;
class Siblings;
struct StepContext;
struct StepPlan;

class Placement {
  public:
    struct Parts {
        const config::EngineSettings& settings;
        Sequences& sequences;
        kv::KvCache& kv;
        Admission& admission;
        SchedulerPort& scheduler;
        PrefixHints& hints;
        const Siblings& siblings;
        BeamSearches& beams;
        Preemption& preemption;
        PressureMonitor& pressure;
        PromptLogprobs& prompt_logprobs;
        DraftKvTable& draft_kv;
        StepContext& context;
    };
    explicit Placement(const Parts& parts) : p_(parts) {}

    void apply(const StepPlan&);
    std::vector<Placed>& placed() { return placed_; } // by the latest plan

  private:
    struct Adopted { // KV that was there already
        uint32_t tokens = 0;
        bool forked = false; // from a sibling, not from the prefix cache
    };
    void place(Sequence&, uint32_t tokens);
    Adopted adopt(Sequence&);
    void admit(Sequence&, const Adopted&);
    void stay_waiting(Sequence&);
    // Whether one that is to be admitted finds pages for all its tokens: what those that run still lack for theirs is
    // not free.
    bool finds_all_pages(const Sequence&) const;

    const Parts p_;
    std::vector<Placed> placed_;
    uint32_t prompt_rows_left_ = 0; // that the step may still have
};

}  // namespace patchbay::engine
