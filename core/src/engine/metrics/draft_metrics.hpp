// Metrics of speculation: drafted and accepted tokens by position, branches, passes of a draft model. Part of
// EngineMetrics.
#pragma once
#include <array>
#include <optional>

#include "engine/step_report.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

enum class DraftsBy { kProposer, kDraftModel };

class DraftMetrics {
  public:
    DraftMetrics(metrics::Metrics&, DraftsBy);
    ~DraftMetrics(); // what is about the present ends with the engine
    void on_step(const DraftReport&);

  private:
    struct ModelPasses {
        explicit ModelPasses(metrics::Metrics&);
        prometheus::Counter &passes, &tokens, &time;
    };

    std::array<prometheus::Counter*, DraftReport::kPositions> drafted_{}, accepted_{};
    prometheus::Gauge& length_;
    prometheus::Counter &branches_, &dropped_branches_, &branch_tokens_;
    std::optional<ModelPasses> model_; // none: the proposer drafts without one
};

}  // namespace patchbay::engine
