// metrics.yaml as compiled in, and the metrics made from it. A name or label that the catalogue lacks throws: it is a
// mistake in the program, and the first test finds it.
#pragma once
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "metrics/labels.hpp"

namespace patchbay::metrics {

struct Entry {
    std::string name, type, help; // type: counter, gauge, histogram
    std::vector<std::string> labels;
    std::vector<double> buckets;     // of a histogram
};

const std::string& catalogue_yaml();
std::vector<Entry> parse_catalogue(const std::string& yaml);

class Metrics {
  public:
    Metrics();
    // The same metrics, whose series all have these labels besides. [any thread]
    std::unique_ptr<Metrics> labelled(Labels) const;
    // Get or make; references stay valid as long as the object. [any thread]
    prometheus::Counter& counter(const std::string& name, const Labels& = {});
    prometheus::Gauge& gauge(const std::string& name, const Labels& = {});
    prometheus::Histogram& histogram(const std::string& name, const Labels& = {});

    // A plugin's own metrics, patchbay_plugin_<name>{kind,plugin}: not in the catalogue, at most 64 a plugin. A name
    // that Prometheus would not take is dropped. [any thread]
    void plugin_add(const std::string& kind, const std::string& plugin, const std::string& name, double amount);
    void plugin_set(const std::string& kind, const std::string& plugin, const std::string& name, double value);
    void plugin_left(const std::string& kind, const std::string& plugin); // its gauges are 0 until it sets them again

    std::string text() const; // in the Prometheus exposition format
    const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }
    const std::vector<Entry>& entries() const { return entries_; }

  private:
    Metrics(std::shared_ptr<prometheus::Registry>, std::vector<Entry>, Labels besides);
    Labels all_labels(const Labels&) const;
    const Entry& entry(const std::string& name, const char* type, const Labels&) const;
    struct PluginSeries { // one of the two, made at its first use
        prometheus::Counter* counter = nullptr;
        prometheus::Gauge* gauge = nullptr;
    };
    // Null: not admitted. [under plugin_mutex_]
    PluginSeries* plugin_series(const std::string& kind, const std::string& plugin, const std::string& name);

    std::shared_ptr<prometheus::Registry> registry_;
    std::vector<Entry> entries_;
    Labels besides_;
    std::mutex plugin_mutex_;
    std::map<std::string, std::map<std::string, PluginSeries>> plugin_series_; // by "kind/plugin", then name
};

}  // namespace patchbay::metrics
