#include "metrics/catalogue.hpp"

#include <prometheus/text_serializer.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace patchbay::metrics {

std::vector<Entry> parse_catalogue(const std::string& yaml) {
    const YAML::Node root = YAML::Load(yaml);
    std::vector<Entry> out;
    for (const auto& item : root["metrics"]) {
        Entry e;
        e.name = item.first.as<std::string>();
        e.type = item.second["type"].as<std::string>();
        e.help = item.second["help"].as<std::string>();
        if (const auto labels = item.second["labels"]) e.labels = labels.as<std::vector<std::string>>();
        if (const auto buckets = item.second["buckets"])
            e.buckets = root["buckets"][buckets.as<std::string>()].as<std::vector<double>>();
        out.push_back(std::move(e));
    }
    return out;
}

Metrics::Metrics() : registry_(std::make_shared<prometheus::Registry>()), entries_(parse_catalogue(catalogue_yaml())) {}

Metrics::Metrics(std::shared_ptr<prometheus::Registry> registry, std::vector<Entry> entries, Labels besides)
    : registry_(std::move(registry)), entries_(std::move(entries)), besides_(std::move(besides)) {}

std::unique_ptr<Metrics> Metrics::labelled(Labels labels) const {
    return std::unique_ptr<Metrics>(new Metrics(registry_, entries_, all_labels(labels)));
}

Labels Metrics::all_labels(const Labels& labels) const {
    Labels all = besides_;
    all.insert(labels.begin(), labels.end());
    return all;
}

const Entry& Metrics::entry(const std::string& name, const char* type, const Labels& labels) const {
    const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    if (at == entries_.end() || at->type != type)
        throw std::logic_error("metrics.yaml has no " + std::string(type) + " " + name);
    const bool same =
        labels.size() == at->labels.size() &&
        std::all_of(at->labels.begin(), at->labels.end(), [&](const std::string& l) { return labels.contains(l); });
    if (!same) throw std::logic_error(name + ": its labels are not those of metrics.yaml");
    return *at;
}

prometheus::Counter& Metrics::counter(const std::string& name, const Labels& labels) {
    return prometheus::BuildCounter()
        .Name(name)
        .Help(entry(name, "counter", labels).help)
        .Register(*registry_)
        .Add(all_labels(labels));
}

prometheus::Gauge& Metrics::gauge(const std::string& name, const Labels& labels) {
    return prometheus::BuildGauge()
        .Name(name)
        .Help(entry(name, "gauge", labels).help)
        .Register(*registry_)
        .Add(all_labels(labels));
}

prometheus::Histogram& Metrics::histogram(const std::string& name, const Labels& labels) {
    const Entry& e = entry(name, "histogram", labels);
    return prometheus::BuildHistogram().Name(name).Help(e.help).Register(*registry_).Add(all_labels(labels), e.buckets);
}

Metrics::PluginSeries* Metrics::plugin_series(const std::string& kind, const std::string& plugin,
                                              const std::string& name) {
    constexpr size_t kMaxNames = 64;
    auto& known = plugin_series_[kind + "/" + plugin];
    if (const auto at = known.find(name); at != known.end()) return &at->second;
    const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (name.empty() || name.size() > 80 || !std::all_of(name.begin(), name.end(), is_word)) return nullptr;
    const auto is_ours = [&](const Entry& e) { return e.name == "patchbay_plugin_" + name; };
    if (known.size() == kMaxNames || std::any_of(entries_.begin(), entries_.end(), is_ours)) return nullptr;
    return &known[name];
}

void Metrics::plugin_add(const std::string& kind, const std::string& plugin, const std::string& name, double amount) {
    const std::lock_guard lock(plugin_mutex_);
    if (!(amount >= 0) || std::isinf(amount)) return;
    PluginSeries* const series = plugin_series(kind, plugin, name + "_total");
    if (!series) return;
    if (!series->counter)
        series->counter = &prometheus::BuildCounter()
                               .Name("patchbay_plugin_" + name + "_total")
                               .Help("counted by a plugin")
                               .Register(*registry_)
                               .Add(all_labels({{"kind", kind}, {"plugin", plugin}}));
    series->counter->Increment(amount);
}

void Metrics::plugin_set(const std::string& kind, const std::string& plugin, const std::string& name, double value) {
    const std::lock_guard lock(plugin_mutex_);
    if (name.ends_with("_total")) return;
    PluginSeries* const series = plugin_series(kind, plugin, name);
    if (!series) return;
    if (!series->gauge)
        series->gauge = &prometheus::BuildGauge()
                             .Name("patchbay_plugin_" + name)
                             .Help("set by a plugin")
                             .Register(*registry_)
                             .Add(all_labels({{"kind", kind}, {"plugin", plugin}}));
    series->gauge->Set(value);
}

void Metrics::plugin_left(const std::string& kind, const std::string& plugin) {
    const std::lock_guard lock(plugin_mutex_);
    const auto left = plugin_series_.find(kind + "/" + plugin);
    if (left == plugin_series_.end()) return;
    for (auto& [name, series] : left->second)
        if (series.gauge) series.gauge->Set(0);
}

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(registry_->Collect()); }

}  // namespace patchbay::metrics
