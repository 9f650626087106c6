// Adds the time of a call, by the engine's clock, to a total.
#pragma once
#include <cstdint>

#include "base/clock.hpp"

namespace patchbay::runner {

template <class F>
auto timed(const Clock& clock, uint64_t& total, F&& f) {
    const uint64_t start = clock.now_ns();
    struct Stop {
        const Clock& clock;
        uint64_t& total;
        uint64_t start;
        ~Stop() { total += clock.now_ns() - start; }
    } const stop{clock, total, start};
    return f();
}

}  // namespace patchbay::runner
