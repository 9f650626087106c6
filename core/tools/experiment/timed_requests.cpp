#include "experiment/timed_requests.hpp"

#include <algorithm>

namespace patchbay::experiment {

TimedRequests::TimedRequests(const Requests& planned, uint64_t start_ns) : planned_(planned), start_ns_(start_ns) {
    for (uint32_t i = 0; i < planned.size(); ++i)
        if (!planned.follows(i)) order_.push_back(i);
    std::ranges::stable_sort(order_, {}, [&](uint32_t i) { return planned.arrival_ns(i); });
}

std::optional<uint32_t> TimedRequests::next(uint64_t now_ns) {
    if (taken_ == order_.size()) return {};
    const uint64_t arrival_ns = start_ns_ + planned_.arrival_ns(order_[taken_]);
    if (arrival_ns > now_ns && arrival_ns > taken_until_ns_) {
        if (taken_until_ns_ > now_ns) return {};
        taken_until_ns_ = arrival_ns;
    }
    return order_[taken_++];
}

}  // namespace patchbay::experiment
