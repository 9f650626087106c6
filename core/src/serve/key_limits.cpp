#include "serve/key_limits.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace patchbay::serve {

KeyLimits::KeyLimits(KeyLimitOptions options, std::function<uint64_t()> now_ns)
    : options_(options), now_ns_(std::move(now_ns)) {}

KeyLimits::Admitted KeyLimits::admit(uint32_t number) {
    if (options_.max_requests == 0 && options_.requests_per_minute == 0) return {std::make_shared<int>(0), "", 0};
    const std::lock_guard lock(mutex_);
    const uint64_t now = now_ns_(); // in the order of those who ask
    if (keys_.size() <= number) keys_.resize(size_t{number} + 1);
    Key& key = keys_[number];
    if (options_.max_requests > 0 && key.under_way >= options_.max_requests)
        return {nullptr, std::to_string(key.under_way) + " requests of this key are under way, no more may be", 1};
    if (options_.requests_per_minute > 0) {
        const double max_allowance = options_.requests_per_minute, per_second = max_allowance / 60;
        const double passed = static_cast<double>(now - key.latest_ns) * 1e-9;
        key.allowance = key.seen ? std::min(max_allowance, key.allowance + passed * per_second) : max_allowance;
        key.latest_ns = now;
        key.seen = true;
        if (key.allowance < 1)
            return {nullptr,
                    "this key may send " + std::to_string(options_.requests_per_minute) + " requests per minute",
                    static_cast<uint32_t>(std::ceil((1 - key.allowance) / per_second))};
        key.allowance -= 1;
    }
    key.under_way += 1;
    return {{this, [number](KeyLimits* limits) { limits->end(number); }}, "", 0};
}

void KeyLimits::end(uint32_t number) {
    const std::lock_guard lock(mutex_);
    keys_[number].under_way -= 1;
}

}  // namespace patchbay::serve
