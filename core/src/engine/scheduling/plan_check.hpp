// A scheduler's plan against the contract: it names sequences that it was shown, each once, and keeps to the budget of
// tokens and to the seats.
#pragma once
#include <span>
#include <vector>

#include "base/result.hpp"
#include "engine/request/ids.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::engine {

struct Sequence;
class Sequences;
struct StepPlan;

class PlanCheck {
  public:
    PlanCheck(const config::EngineSettings& settings, const Sequences& sequences)
        : settings_(settings), sequences_(sequences) {}

    // What it wrote, as a plan; or what it did that breaches the contract: "plans no tokens for 3". `plan` is of no use
    // then.
    Result<> read(std::span<const pb_plan_item>, std::span<const pb_preempt_item>, StepPlan& plan);

  private:
    Result<> read_preemptions(std::span<const pb_preempt_item>, StepPlan&);
    Result<> read_items(std::span<const pb_plan_item>, StepPlan&);
    Sequence* find_shown(RequestId, size_t& hint) const;

    const config::EngineSettings& settings_;
    const Sequences& sequences_;
    std::vector<RequestId> named_; // by the plan that is read
};

}  // namespace patchbay::engine
