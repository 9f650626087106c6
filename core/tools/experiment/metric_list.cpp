#include "experiment/metric_list.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "experiment/step_numbers.hpp"
#include "host/plugin_list.hpp"

namespace patchbay::experiment {
namespace {

constexpr std::string_view kOfPlugins = "plugin.";

MetricList made_list() {
    MetricList all{{"output_throughput", "tok/s", "output throughput", Better::kHigher, true},
                   {"total_throughput", "tok/s", "total throughput", Better::kHigher, true},
                   {"request_throughput", "req/s", "request throughput", Better::kHigher, true},
                   {"offered_rate", "req/s", "offered load", Better::kNeither, true}};
    const std::pair<const char*, const char*> families[] = {
        {"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2e", "E2E"}, {"normalised", "normalised latency"}};
    for (const auto& [name, label] : families)
        for (const char* of : {"mean", "p50", "p90", "p99"})
            all.push_back({std::string(name) + "_" + of, "ms", std::string(label) + " " + of, Better::kLower, true});
    all.push_back({"goodput_share", "%", "goodput share", Better::kHigher, false});
    all.push_back({"goodput_rate", "req/s", "goodput", Better::kHigher, true});
    all.push_back({"prefix_hit_share", "%", "prefix hits", Better::kHigher, false});
    all.push_back({"preemptions", "per run", "preemptions", Better::kLower, false});
    for (const MetricInfo& info : step_metrics()) all.push_back(info);
    all.push_back({"capacity", "req/s", "capacity", Better::kHigher, true});
    return all;
}

}  // namespace

const MetricList& metric_infos() {
    static const MetricList infos = made_list();
    return infos;
}

std::optional<size_t> metric_named(const std::string& name, const MetricList& list) {
    const auto at = std::ranges::find(list, name, &MetricInfo::name);
    if (at == list.end()) return std::nullopt;
    return static_cast<size_t>(at - list.begin());
}

bool is_plugin_metric(const std::string& name) {
    if (!name.starts_with(kOfPlugins)) return false;
    const std::string rest = name.substr(kOfPlugins.size());
    const size_t dot = rest.find('.');
    if (dot == rest.npos || dot + 1 == rest.size()) return false;
    const bool plain = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", dot + 1) == rest.npos;
    return plain && std::ranges::find(host::kKinds, std::string_view(rest).substr(0, dot)) != host::kKinds.end();
}

MetricInfo plugin_metric(const std::string& name) {
    std::string label = name.substr(kOfPlugins.size());
    std::ranges::replace(label, '.', ' ');
    const bool is_counter = name.ends_with("_total");
    if (is_counter) label.resize(label.size() - std::string_view("_total").size());
    return {name, is_counter ? "per run" : "", label, Better::kNeither, false};
}

}  // namespace patchbay::experiment
