#include "engine/metrics/grammar_metrics.hpp"

#include "engine/metrics/seconds.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

GrammarMetrics::GrammarMetrics(metrics::Metrics& m)
    : compiled_(m.counter("patchbay_grammars_total", {{"outcome", "compiled"}})),
      cached_(m.counter("patchbay_grammars_total", {{"outcome", "cached"}})),
      refused_(m.counter("patchbay_grammars_total", {{"outcome", "refused"}})),
      compile_seconds_(m.counter("patchbay_grammar_compile_seconds_total")),
      masks_(m.counter("patchbay_grammar_masks_total")),
      mask_seconds_(m.counter("patchbay_grammar_mask_seconds_total")),
      cut_drafts_(m.counter("patchbay_grammar_cut_drafts_total")) {}

void GrammarMetrics::on_step(const GrammarReport& r) {
    compiled_.Increment(static_cast<double>(r.compiled));
    cached_.Increment(static_cast<double>(r.cached));
    refused_.Increment(static_cast<double>(r.refused));
    compile_seconds_.Increment(seconds(r.compile_ns));
    masks_.Increment(r.masks);
    mask_seconds_.Increment(seconds(r.mask_ns));
    cut_drafts_.Increment(r.cut_drafts);
}

}  // namespace patchbay::engine
