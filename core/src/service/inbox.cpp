#include "service/inbox.hpp"

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
    return std::erase_if(contents_.arrivals, [&](const Arrival& a) { return a.stream.get() == &stream; }) > 0;
}

Inbox::Contents Inbox::take() { return std::exchange(contents_, {}); }

Inbox::Contents Inbox::take_all_but_arrivals() {
    Contents taken = take();
    contents_.arrivals.swap(taken.arrivals);
    return taken;
}

bool Inbox::empty() const {
    return !stopping_ && !contents_.wants_boundary && contents_.arrivals.empty() && contents_.tasks.empty();
}

}  // namespace patchbay::service
