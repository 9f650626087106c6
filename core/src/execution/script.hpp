// A script in place of a model: sees a step from inside and says what its rows become.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "patchbay/abi/scheduler.h"

namespace patchbay::execution {

struct ScriptedBranch { // of a tree of drafts
    std::span<const int32_t> drafts; // from the newest token on
    std::span<int32_t> tokens;       // of its last rows: those that no path before it has
};

struct ScriptedRows { // logit rows of one sequence, in a step that comes back
    uint64_t id;
    std::span<const int32_t> drafts; // that the rows after the first one verify
    std::span<int32_t> tokens;       // what the rows become: synthetic tokens, until the script writes others
    std::vector<ScriptedBranch> branches{};
};

class Script {
  public:
    virtual ~Script() = default;
    // The plan is applied: blocks are given out, nothing is computed. Empty: the step ends with it. [step]
    virtual void planned(std::span<const pb_plan_item>) = 0;
    // A step is back. [step]
    virtual void sampled(std::span<const ScriptedRows>) = 0;
};

}  // namespace patchbay::execution
