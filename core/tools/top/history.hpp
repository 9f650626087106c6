// The latest scrapes of an engine, and what they say together: rates over some seconds, and how a number moved.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "metrics/scrape.hpp"

namespace patchbay::top {

class History {
  public:
    static constexpr size_t kMaxScrapes = 300;
    static constexpr double kWindowSeconds = 10; // of rates and quantiles

    void add(double at_seconds, metrics::Scrape); // times increase
    size_t size() const { return moments_.size(); }
    const metrics::Scrape& latest() const; // empty at first
    // To the latest from that scrape before it which is nearest to kWindowSeconds old.
    metrics::Interval recent() const;

    // A value for each scrape, oldest first; of rates one for each but the first.
    std::vector<double> values(const std::string& gauge, const metrics::Labels& = {}) const;
    std::vector<double> rates(const std::string& counter, const metrics::Labels& = {}) const;

  private:
    struct Moment {
        double at = 0;
        metrics::Scrape scrape;
    };
    std::deque<Moment> moments_;
};

}  // namespace patchbay::top
