// `patchbay plugin test --thorough`: the checks with other random cases, then random worlds in an engine. A world that
// fails is made smaller and left as a scenario file, which `patchbay scenario run` replays.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace patchbay::cli {

struct ThoroughTest {
    std::string library;
    uint64_t seed = 1;     // of the first world, and of the checks
    uint32_t worlds = 200; // of each scheduler and kv_policy
    uint32_t timeout_s = 60; // of one probe; a world has a quarter of it
};

// After the usual checks have passed. Fails with the first failure of each component, which it prints.
Result<> test_thoroughly(const ThoroughTest&);

}  // namespace patchbay::cli
