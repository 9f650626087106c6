// One engine under a random load that is a pure function of a seed: arrivals, cancellations, swaps, faults, little
// memory. After each step its bookkeeping is audited, and every token is compared with the expected one.
#pragma once
#include <map>
#include <memory>
#include <set>

#include "engine/engine.hpp"
#include "simulation/drafter_fixture.hpp"

namespace patchbay::engine::testing {

// Why it failed, and in which step; empty: it passed. Drains at the end.
std::string simulate(uint64_t seed, uint32_t steps);

// Counts the events of simulations, so that a test can check that they occurred.
struct Met {
    uint64_t requests = 0, outputs = 0, aborted = 0, refused = 0, preemptions = 0, accepted = 0, hits = 0, swaps = 0;
    uint64_t other_swaps = 0, other_ends = 0; // of other slots than the scheduler's: committed; refused or rolled back
    uint64_t rolled_back = 0, bad_plans = 0, proposer_faults = 0, forked = 0, trimmed = 0, stopped = 0, overlapped = 0;
    uint64_t swapped_out = 0, swapped_in = 0, recomputed_as_dearer = 0, by_branch = 0;
    uint64_t searched = 0, best = 0, crowded = 0; // outputs that were chosen among others; of them preempted ones
};
Met& met();

}  // namespace patchbay::engine::testing
