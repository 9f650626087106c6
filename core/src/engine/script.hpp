// A script in place of a model: sees a step from inside and says what its rows become. For engines on a device that
// computes nothing; all else of them is as it serves. Used by core/tools/scenario.
#pragma once
#include <span>
#include <vector>

#include "engine/request.hpp"
#include "engine/step_report.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

struct ScriptedBranch { // of a tree of drafts
    std::span<const TokenId> drafts; // from the newest token on
    std::span<TokenId> tokens;       // of its last rows: those that no path before it has
};

struct ScriptedRows { // logit rows of one sequence, in a step that comes back
    RequestId id;
    std::span<const TokenId> drafts; // that the rows behind the first one verify
    std::span<TokenId> tokens;       // what the rows become: synthetic tokens, until the script writes others
    std::vector<ScriptedBranch> branches{};
};

class Script {
  public:
    virtual ~Script() = default;
    // The plan is applied: blocks are given out, nothing is computed. Empty: the step ends with it. [step]
    virtual void planned(std::span<const pb_plan_item>) = 0;
    // A step is back. Not called for one without rows, unless it was in flight. [step]
    virtual void sampled(std::span<const ScriptedRows>) = 0;
};

struct View { // of what an engine holds, in the records that schedulers are shown
    std::vector<pb_sequence> waiting; // behind the queue those that have arrived since the last step
    std::vector<pb_sequence> running; // in order of admission
    std::vector<RequestId> preempted; // by the latest plan
    uint32_t free_blocks = 0, cached_blocks = 0, total_blocks = 0;
    uint32_t free_swap_blocks = 0, total_swap_blocks = 0;
    StepReport report;                // of the step under way as far as it has come, or of the latest one
};

}  // namespace patchbay::engine
