// Metrics that are numbers of a step's report, a row each. Part of EngineMetrics.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct EngineFacts;
struct StepReport;

struct ReportRow {
    std::string name;
    metrics::Labels labels;
    std::function<double(const StepReport&)> value; // of a counter: what the step adds
};
struct ReportRows {
    std::vector<ReportRow> counters, gauges;
};
ReportRows rows_of_steps();
ReportRows rows_of_computing_steps(); // of those that were dispatched to the device
// With a draft model: of its passes, too.
ReportRows rows_of_drafts(bool by_draft_model);
// As if a step had said what is there before the first one.
StepReport report_at_load(const EngineFacts&);

class ReportMetrics {
  public:
    ReportMetrics(metrics::Metrics&, ReportRows, const StepReport& at_load);
    ~ReportMetrics(); // what is about the present ends with the engine
    void on_step(const StepReport&);

  private:
    template <class Metric>
    using Rows = std::vector<std::pair<Metric*, std::function<double(const StepReport&)>>>;

    Rows<prometheus::Counter> counters_;
    Rows<prometheus::Gauge> gauges_;
};

}  // namespace patchbay::engine
