// What follows an engine's steps from outside: metrics, KV events, traces, logs of decisions. [step thread]
#pragma once
#include <vector>

namespace patchbay::engine {

struct Placed;
struct StepPlan;
struct StepReport;

class StepObserver {
  public:
    virtual ~StepObserver() = default;
    virtual void on_planned(const StepPlan&) {}           // checked, and nothing of it done yet
    virtual void on_placed(const std::vector<Placed>&) {} // the plan is applied, and nothing computed yet
    virtual void on_end(const StepReport&) {}             // of a step that did not fail
};

// Those of an engine, each called for every step, in the order in which they were added.
class StepObservers {
  public:
    void add(StepObserver& observer) { all_.push_back(&observer); }
    void remove(StepObserver& observer) { std::erase(all_, &observer); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

  private:
    std::vector<StepObserver*> all_;
};

}  // namespace patchbay::engine
