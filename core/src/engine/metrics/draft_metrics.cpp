#include "engine/metrics/draft_metrics.hpp"

#include <string>

#include "engine/metrics/seconds.hpp"

namespace patchbay::engine {

DraftMetrics::ModelPasses::ModelPasses(metrics::Metrics& m)
    : passes(m.counter("patchbay_draft_model_passes_total")), tokens(m.counter("patchbay_draft_model_tokens_total")),
      time(m.counter("patchbay_draft_model_seconds_total")) {}

DraftMetrics::DraftMetrics(metrics::Metrics& m, DraftsBy by)
    : length_(m.gauge("patchbay_spec_draft_length")),
      branches_(m.counter("patchbay_spec_branches_total", {{"outcome", "verified"}})),
      dropped_branches_(m.counter("patchbay_spec_branches_total", {{"outcome", "dropped"}})),
      branch_tokens_(m.counter("patchbay_spec_branch_accepted_tokens_total")) {
    for (size_t i = 0; i < drafted_.size(); ++i) {
        const metrics::Labels position{{"position", std::to_string(i + 1)}};
        drafted_[i] = &m.counter("patchbay_spec_drafted_tokens_total", position);
        accepted_[i] = &m.counter("patchbay_spec_accepted_tokens_total", position);
    }
    if (by == DraftsBy::kDraftModel) model_.emplace(m);
}

DraftMetrics::~DraftMetrics() { length_.Set(0); }

void DraftMetrics::on_step(const DraftReport& r) {
    length_.Set(r.length);
    branches_.Increment(r.branches);
    dropped_branches_.Increment(r.dropped_branches);
    branch_tokens_.Increment(r.branch_tokens);
    for (size_t i = 0; i < drafted_.size(); ++i) {
        drafted_[i]->Increment(r.drafted_at[i]);
        accepted_[i]->Increment(r.accepted_at[i]);
    }
    if (!model_) return;
    model_->passes.Increment(r.passes);
    model_->tokens.Increment(r.pass_tokens);
    model_->time.Increment(seconds(r.pass_ns));
}

}  // namespace patchbay::engine
