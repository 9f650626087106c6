#include "experiment/plugin_numbers.hpp"

#include <cmath>

namespace patchbay::experiment {

void PluginNumbers::add(const std::string& kind, const std::string& component, const std::string& name,
                        double amount) {
    if (also_) also_->add(kind, component, name, amount);
    if (!(amount >= 0) || std::isinf(amount)) return; // as the exporter does
    const std::lock_guard lock(mutex_);
    counters_["plugin." + kind + "." + name + "_total"].since_step += amount;
}

void PluginNumbers::set(const std::string& kind, const std::string& component, const std::string& name, double value) {
    if (also_) also_->set(kind, component, name, value);
    if (!std::isfinite(value) || name.ends_with("_total")) return;
    const std::lock_guard lock(mutex_);
    gauges_["plugin." + kind + "." + name].now = value;
}

void PluginNumbers::begin() {
    const std::lock_guard lock(mutex_);
    for (auto& [name, counter] : counters_) counter = {};
    for (auto& [name, gauge] : gauges_) gauge = {.now = gauge.now};
}

void PluginNumbers::after_step(uint64_t duration_ns, bool counts) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, counter] : counters_) {
        if (counts) counter.sum += counter.since_step;
        counter.since_step = 0;
    }
    const auto time = static_cast<double>(duration_ns);
    for (auto& [name, gauge] : gauges_) {
        if (!counts) continue;
        gauge.integral += gauge.now * time;
        gauge.time += time;
    }
}

std::vector<NamedNumber> PluginNumbers::numbers() const {
    const std::lock_guard lock(mutex_);
    std::vector<NamedNumber> out;
    for (const auto& [name, counter] : counters_) out.push_back({name, counter.sum});
    for (const auto& [name, gauge] : gauges_)
        if (gauge.time > 0) out.push_back({name, gauge.integral / gauge.time});
    return out;
}

}  // namespace patchbay::experiment
