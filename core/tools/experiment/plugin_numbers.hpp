// What plugins count and set themselves in a run: a number for each of their metrics. Passes everything on as well.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "experiment/record.hpp"
#include "host/component.hpp"

namespace patchbay::experiment {

class PluginNumbers final : public host::MetricSink {
  public:
    explicit PluginNumbers(host::MetricSink* also) : also_(also) {} // may be null
    void add(const std::string& kind, const std::string& component, const std::string& name, double amount) override;
    void set(const std::string& kind, const std::string& component, const std::string& name, double value) override;

    void begin(); // the run: what was counted before it is left out
    // What was added since the step before, and what holds now, belong to this step.
    void after_step(uint64_t duration_ns, bool counts);
    // Counters: what was added in the steps that count. Gauges: the mean, weighted by the time of these steps.
    std::vector<NamedNumber> numbers() const;

  private:
    struct Counter {
        double since_step = 0, sum = 0;
    };
    struct Gauge {
        double now = 0, integral = 0, time = 0;
    };
    host::MetricSink* const also_;
    mutable std::mutex mutex_;
    std::map<std::string, Counter> counters_; // by the metric's name
    std::map<std::string, Gauge> gauges_;
};

}  // namespace patchbay::experiment
