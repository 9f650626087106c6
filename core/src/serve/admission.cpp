#include "serve/admission.hpp"

#include <string>
#include <utility>

namespace patchbay::serve {

Admission::Admission(uint32_t max_requests, KeyLimitOptions key_limits, std::function<uint64_t()> now_ns)
    : max_requests_(max_requests), key_limits_(key_limits, std::move(now_ns)) {}

Admission::Admitted Admission::admit(uint32_t key) {
    if (closed_)
        return {nullptr, fail(StatusCode::kUnavailable, "the server is draining, and takes no requests"), "draining"};
    std::shared_ptr<void> of_all = permit(); // first: what is refused for others takes nothing of the key's
    if (!of_all)
        return {nullptr,
                fail(StatusCode::kExhausted,
                     std::to_string(max_requests_) + " requests are under way, no more fit now"),
                "busy"};
    KeyLimits::Admitted of_key = key_limits_.admit(key);
    if (!of_key.permit)
        return {nullptr, fail(StatusCode::kExhausted, of_key.why), "key_limit", of_key.retry_after_s};
    return {std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(std::move(of_key.permit),
                                                                                      std::move(of_all))};
}

std::shared_ptr<void> Admission::permit() {
    if (under_way_.fetch_add(1) >= max_requests_) {
        under_way_ -= 1;
        return nullptr;
    }
    return {this, [](Admission* all) { all->under_way_ -= 1; }};
}

}  // namespace patchbay::serve
