// What a scheduler decided in each step, what it knew of it, and what became of it: for those who ask why a request
// waited, and for comparing policies. A step costs O(what it planned).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/loop/step_observer.hpp"
#include "engine/scheduling/step_plan.hpp"
#include "engine/trace/decision_file.hpp"
#include "engine/trace/step_files.hpp"

namespace patchbay::engine {

struct StepReport;

class DecisionLog final : public StepObserver {
  public:
    DecisionLog(std::unique_ptr<DecisionFile> file, const StepSources& sources)
        : file_(std::move(file)), sources_(sources) {}

    void on_planned(const StepPlan&) override;
    void on_placed(const std::vector<Placed>&) override;
    void on_end(const StepReport&) override; // nothing is written of a step in which there were no sequences
    Result<> close() { return file_->close(); }
    std::unique_ptr<DecisionFile> give_file() { return std::move(file_); } // nothing may be called after it

  private:
    struct Item { // of the plan
        RequestId id, group;
        uint32_t tokens, placed;   // planned; of them those for which there was room
        uint32_t computed, drafts; // of it before the step
        uint32_t known;            // tokens of it before the step, without drafts
        bool waited;               // was to be admitted
    };

    std::unique_ptr<DecisionFile> file_;
    const StepSources sources_;
    std::vector<Item> items_; // of the step under way
    std::vector<StepPlan::Preemption> preemptions_;
    std::string scheduler_;   // that planned it
    size_t running_ = 0, waiting_ = 0;
    uint32_t free_pages_ = 0; // before it
};

}  // namespace patchbay::engine
