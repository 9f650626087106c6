// The sequences of one beam search in the engine: one a beam, admitted and preempted as a whole. Engine-internal.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/beam_search.hpp"

namespace patchbay::engine {

struct Sequence;

struct BeamGroup {
    BeamSearch search;
    std::vector<Sequence*> slots;                    // the first ones hold the open beams, best first
    std::vector<BeamSearch::Candidates> candidates;  // by open beam; empty: not computed yet
    uint64_t preempted_at = 0;                       // step; 0: never
};

}  // namespace patchbay::engine
