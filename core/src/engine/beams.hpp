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

// Tokens behind which a sequence keeps all of a sliding window's pages. Computed anew, the first of a search is what
// the others fork from, at the end of what they have in common with it; UINT32_MAX: nobody does.
uint32_t needed_from(const Sequence&);

// Candidates that each beam of such a request has to bring in a step.
uint32_t candidates_wanted(const SamplingParams&, const std::vector<TokenId>& eos, uint32_t vocab_size);

}  // namespace patchbay::engine
