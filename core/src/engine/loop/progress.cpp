#include "engine/loop/progress.hpp"

#include <algorithm>
#include <string>

#include "base/clock.hpp"
#include "engine/request/sequences.hpp"

namespace patchbay::engine {

void Progress::wait_if_idle() {
    const auto& pending = sequences_.pending();
    if (pending.empty() || !sequences_.waiting().empty() || !sequences_.running().empty()) return;
    clock_.wait_until_ns(pending.begin()->first);
}

Result<> Progress::check(bool idle) {
    constexpr uint32_t kMaxIdleSteps = 1000;
    constexpr uint64_t kPauseNs = 1'000'000;
    idle_steps_ = idle ? idle_steps_ + 1 : 0;
    const auto& pending = sequences_.pending();
    if (idle_steps_ >= kMaxIdleSteps && pending.empty() &&
        scheduler_.give_up("ran nothing for " + std::to_string(idle_steps_) + " steps in a row"))
        idle_steps_ = 0;
    if (idle_steps_ < 2) return {}; // a plan may have been refused, or its work taken away: the next step has it
    if (idle_steps_ >= kMaxIdleSteps && pending.empty())
        return fail(scheduler_.text() + " ran nothing for " + std::to_string(kMaxIdleSteps) +
                    " steps in a row with " + std::to_string(sequences_.all().size()) + " requests unfinished");
    const uint64_t soon = clock_.now_ns() + kPauseNs;
    clock_.wait_until_ns(pending.empty() ? soon : std::min(soon, pending.begin()->first));
    return {};
}

}  // namespace patchbay::engine
