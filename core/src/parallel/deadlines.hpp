// How long ranks wait for one another. Used by both sides, hub.hpp and spoke.hpp.
#pragma once
#include <algorithm>
#include <cstdint>

namespace patchbay::parallel {

struct Deadlines { // nanoseconds
    uint64_t join = 60'000'000'000;      // until all ranks have joined
    uint64_t heartbeat = 3'000'000'000;  // silence after which a rank counts as hung
    uint64_t step = 600'000'000'000;     // computing one step
    uint64_t load = 1'800'000'000'000;   // one part of loading a model
    uint64_t hello = 5'000'000'000;      // from connecting to saying hello
    // Between heartbeats. Always short, since the other side may have a shorter limit than this one.
    uint64_t beat() const { return std::min<uint64_t>(heartbeat / 6, 500'000'000); }
};

}  // namespace patchbay::parallel
