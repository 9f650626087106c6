// Plays a scenario: an engine on the device `sim` does what it always does, its tokens come from the file, and each
// expectation is held against what the engine has. Used by `patchbay scenario run` and the tests.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

struct Difference { // the first; nothing is played after it
    config::Origin origin;
    size_t step = 0; // 1-based, of the file
    std::string what, expected, got;

    std::string text() const; // three lines, the first with file:line
};

struct Played {
    std::optional<Difference> difference;
    uint64_t engine_steps = 0;
};

// Fails where no engine can be made of the file.
Result<Played> play(const Scenario&, const host::Registry&, host::Prober&);

}  // namespace patchbay::scenario
