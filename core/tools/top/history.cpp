#include "top/history.hpp"

#include <cmath>
#include <utility>

namespace patchbay::top {

void History::add(double at_seconds, metrics::Scrape scrape) {
    moments_.push_back({at_seconds, std::move(scrape)});
    if (moments_.size() > kMaxScrapes) moments_.pop_front();
}

const metrics::Scrape& History::latest() const {
    static const metrics::Scrape kEmpty;
    return moments_.empty() ? kEmpty : moments_.back().scrape;
}

metrics::Interval History::recent() const {
    if (moments_.empty()) return {latest(), latest(), 0};
    const Moment& now = moments_.back();
    const auto distance = [&](const Moment& m) { return std::abs(now.at - m.at - kWindowSeconds); };
    const Moment* from = &moments_.front();
    for (size_t i = 0; i + 1 < moments_.size(); ++i) // between the latest and itself nothing happens
        if (distance(moments_[i]) < distance(*from)) from = &moments_[i];
    return {from->scrape, now.scrape, now.at - from->at};
}

std::vector<double> History::values(const std::string& gauge, const metrics::Labels& labels) const {
    std::vector<double> out;
    for (const Moment& m : moments_) out.push_back(m.scrape.sum(gauge, labels));
    return out;
}

std::vector<double> History::rates(const std::string& counter, const metrics::Labels& labels) const {
    std::vector<double> out;
    for (size_t i = 1; i < moments_.size(); ++i) {
        const Moment &from = moments_[i - 1], &to = moments_[i];
        out.push_back(metrics::Interval(from.scrape, to.scrape, to.at - from.at).rate(counter, labels));
    }
    return out;
}

}  // namespace patchbay::top
