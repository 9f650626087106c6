#include "engine/output/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace patchbay::engine {

StopMatcher::Stop::Stop(const std::string& t) : text(t), borders(t.size() + 1, 0) {
    for (uint32_t n = 1; n < text.size(); ++n) borders[n + 1] = after(borders[n], text[n]);
}

// How many of its first bytes end a text that `begun` of them ended, and then this byte came.
uint32_t StopMatcher::Stop::after(uint32_t begun, char next) const {
    if (begun == text.size()) begun = borders[begun];
    while (begun > 0 && text[begun] != next) begun = borders[begun];
    return text[begun] == next ? begun + 1 : 0;
}

StopMatcher::StopMatcher(const std::vector<std::string>& stops, Keep keep) : begun_(stops.size(), 0), keep_(keep) {
    if (!stops.empty()) stops_ = std::make_shared<const std::vector<Stop>>(stops.begin(), stops.end());
}

std::string StopMatcher::add(std::string_view text, bool may_end) {
    if (!matched_.empty()) return {};
    if (!stops_) return std::string(text);
    match(text, may_end);
    if (!matched_.empty()) return std::exchange(held_, {});
    size_t hold = 0; // the longest end of the text that begins a stop string
    for (size_t i = 0; i < begun_.size(); ++i) {
        const Stop& stop = (*stops_)[i]; // one that is whole ended too early
        hold = std::max<size_t>(hold, begun_[i] == stop.text.size() ? stop.borders[begun_[i]] : begun_[i]);
    }
    std::string out = held_.substr(0, held_.size() - hold);
    held_.erase(0, out.size());
    return out;
}

// Of those that end in this text, the one that begins first; of two that begin there, the longer one.
void StopMatcher::match(std::string_view text, bool may_end) {
    const size_t before = held_.size();
    held_ += text;
    size_t first = std::string::npos;
    for (size_t i = 0; i < begun_.size(); ++i) {
        const Stop& stop = (*stops_)[i];
        uint32_t& begun = begun_[i];
        for (size_t end = before + 1; end <= held_.size(); ++end) {
            begun = stop.after(begun, held_[end - 1]);
            if (begun < stop.text.size() || !may_end) continue;
            const size_t at = end - stop.text.size();
            if (at < first || (at == first && stop.text.size() > matched_.size())) {
                first = at;
                matched_ = stop.text;
            }
            break; // it begins later the next time
        }
    }
    if (!matched_.empty()) held_.resize(first + (keep_ == Keep::kIncluding ? matched_.size() : 0));
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace patchbay::engine
