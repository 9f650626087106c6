#include "engine/output/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace patchbay::engine {

std::string StopMatcher::add(std::string_view text, bool may_end) {
    if (!matched_.empty()) return {};
    if (stops_.empty()) return std::string(text);
    held_ += text;
    if (!may_end) too_early_ = held_.size();

    size_t first = std::string::npos;
    for (const std::string& stop : stops_) {
        const size_t at = held_.find(stop, too_early_ < stop.size() ? 0 : too_early_ + 1 - stop.size());
        if (at < first || (at == first && at != std::string::npos && stop.size() > matched_.size())) {
            first = at;
            matched_ = stop;
        }
    }
    if (!matched_.empty()) {
        held_.resize(first + (keep_ == Keep::kIncluding ? matched_.size() : 0));
        return std::exchange(held_, {});
    }

    size_t hold = 0; // the longest suffix that begins a stop string
    for (const std::string& stop : stops_)
        for (size_t n = std::min(stop.size() - 1, held_.size()); n > hold; --n)
            if (held_.ends_with(std::string_view(stop).substr(0, n))) {
                hold = n;
                break;
            }
    std::string out = held_.substr(0, held_.size() - hold);
    held_.erase(0, out.size());
    too_early_ -= std::min(too_early_, out.size());
    return out;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace patchbay::engine
