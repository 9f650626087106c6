// The scheduler in its slot: what it hears of sequences, and the plans it makes. One on probation that fails leaves its
// plan to its predecessor.
#pragma once
#include <string>
#include <vector>

#include "engine/scheduling/plan_check.hpp"
#include "engine/scheduling/step_plan.hpp"
#include "host/slot.hpp"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::engine {

class SchedulerView;
class Sequences;
struct StepContext;
class SwapJournal;

class SchedulerPort {
  public:
    SchedulerPort(const config::EngineSettings&, const Sequences&, Clock&, StepContext&, SwapJournal&);
    void connect(SchedulerView& view) { view_ = &view; } // before the first plan

    host::Slot& slot() { return slot_; }
    const host::Slot& slot() const { return slot_; }
    std::string text() const; // "scheduler 'fcfs'"

    void arrived(const pb_sequence&);
    void finished(const Sequence&);
    void resync(const host::Component&); // with all that waits and runs

    // The next plan. One that breaks the contract is refused: it is empty then, and counted; several in a row are a
    // failure.
    Result<> plan();
    const StepPlan& latest() const { return plan_; }
    // Its predecessor is back. False: it is not on probation.
    bool roll_back(const std::string& phase, const Failure& why);
    bool give_up(const std::string& reason); // on one whose plans are allowed and let nothing run

  private:
    Result<> ask();

    Clock& clock_;
    StepContext& context_;
    SwapJournal& journal_;
    SchedulerView* view_ = nullptr;
    host::Slot slot_;
    PlanCheck check_;
    StepPlan plan_;
    bool returned_ = false; // the latest call did not fail, whatever it gave
    std::vector<pb_plan_item> items_;
    std::vector<pb_preempt_item> preempts_;
    uint32_t bad_plans_ = 0; // in a row
};

}  // namespace patchbay::engine
