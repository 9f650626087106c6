// What a metric is: its name in files, how it is shown, which direction is better.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace patchbay::experiment {

enum class Better { kHigher, kLower, kNeither };

struct MetricInfo {
    std::string name, unit; // "ttft_p99", "ms"
    std::string label;      // "TTFT p99"
    Better better;
    bool is_amount;         // times, rates, lengths of queues: compared by their ratios; else by differences
};
using MetricList = std::vector<MetricInfo>; // in the order in which they are shown

// Those that every run has; docs/experiments.md defines them. Metrics of plugins come after them.
const MetricList& metric_infos();
std::optional<size_t> metric_named(const std::string& name, const MetricList& = metric_infos());

// "plugin.scheduler.starved_total": what plugins of a kind count or set themselves.
bool is_plugin_metric(const std::string& name);
MetricInfo plugin_metric(const std::string& name);

}  // namespace patchbay::experiment
