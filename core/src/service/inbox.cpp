#include "service/inbox.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace patchbay::service {

Result<> Inbox::add(Arrival arrival) {
    if (arrivals() >= max_arrivals_)
        return fail(StatusCode::kExhausted, std::to_string(arrivals()) +
                                                " requests wait for the step under way to end, expected at most " +
                                                std::to_string(max_arrivals_));
    contents_.arrivals.push_back(std::move(arrival));
    return {};
}

bool Inbox::remove(const Stream& stream) {
    auto& all = contents_.arrivals;
    const auto at = std::ranges::find_if(all, [&](const Arrival& a) { return a.stream.get() == &stream; });
    if (at == all.end()) return false;
    if (static_cast<size_t>(at - all.begin()) < before_hold_) before_hold_ -= 1;
    all.erase(at);
    return true;
}

Inbox::Contents Inbox::take() {
    before_hold_ = 0;
    return std::exchange(contents_, {});
}

Inbox::Contents Inbox::take_but_held() {
    const auto before = static_cast<ptrdiff_t>(before_hold_);
    Contents taken = take();
    const auto first_held = taken.arrivals.begin() + before;
    std::move(first_held, taken.arrivals.end(), std::back_inserter(contents_.arrivals));
    taken.arrivals.erase(first_held, taken.arrivals.end());
    return taken;
}

bool Inbox::empty() const {
    return !stopping_ && !contents_.wants_boundary && contents_.arrivals.empty() && contents_.tasks.empty();
}

}  // namespace patchbay::service
