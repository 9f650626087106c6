// Metrics of grammars: compiled, found compiled, refused, and the masks made of them. Part of EngineMetrics.
#pragma once
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct GrammarReport;

class GrammarMetrics {
  public:
    explicit GrammarMetrics(metrics::Metrics&);
    void on_step(const GrammarReport&);

  private:
    prometheus::Counter &compiled_, &cached_, &refused_, &compile_seconds_, &masks_, &mask_seconds_, &cut_drafts_;
};

}  // namespace patchbay::engine
