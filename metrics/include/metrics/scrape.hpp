// What GET /metrics of an engine answered, read back, and what became of it between two such answers. For commands that
// show an engine that runs elsewhere.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "metrics/labels.hpp"

namespace patchbay::metrics {

struct ScrapedSeries {
    Labels labels;
    double value = 0;
};

class Scrape {
  public:
    Scrape() = default;
    // Prometheus's text format. Lines that are no samples are passed over.
    explicit Scrape(std::string_view text);

    bool has(const std::string& name) const { return series_.contains(name); }
    const std::vector<ScrapedSeries>& series(const std::string& name) const; // in the order of the text
    // Of all series that have the wanted labels, whatever others they have. 0 where there are none.
    double sum(const std::string& name, const Labels& wanted = {}) const;
    // The values of a label, each once, in the order of the text.
    std::vector<std::string> values_of(const std::string& name, const std::string& label,
                                       const Labels& wanted = {}) const;

  private:
    std::unordered_map<std::string, std::vector<ScrapedSeries>> series_;
};

// Between two scrapes of one engine. NaN: nothing of it happened in between.
class Interval {
  public:
    Interval(const Scrape& from, const Scrape& to, double seconds) : from_(from), to_(to), seconds_(seconds) {}

    const Scrape& end() const { return to_; }
    double seconds() const { return seconds_; }
    double increase(const std::string& counter, const Labels& wanted = {}) const; // one that began anew counts from 0
    double rate(const std::string& counter, const Labels& wanted = {}) const;     // a second
    // Of a histogram, 0 ≤ q ≤ 1, as Prometheus's histogram_quantile: linear within a bucket; above the last finite
    // edge, that edge.
    double quantile(const std::string& histogram, double q, const Labels& wanted = {}) const;
    double mean(const std::string& histogram, const Labels& wanted = {}) const;

  private:
    const Scrape &from_, &to_;
    double seconds_;
};

double share_of(double part, double whole); // NaN where the whole is 0

}  // namespace patchbay::metrics
