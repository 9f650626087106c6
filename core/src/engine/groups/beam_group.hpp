// The record of one beam search that is under way. Used by BeamSearches and BeamRoom.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/groups/beam_search.hpp"

namespace patchbay::engine {

struct Sequence;

struct BeamGroup {
    BeamSearch search;
    std::vector<Sequence*> slots;                    // the first ones hold the open beams, best first
    std::vector<BeamSearch::Candidates> candidates;  // by open beam; empty: not computed yet
    uint64_t preempted_at = 0;                       // step; 0: never

    uint32_t shared_with_first(size_t beam) const; // tokens whose KV it has in common with the first one
    // Tokens of the first one that others, which have no pages yet, fork from; UINT32_MAX: none does.
    uint32_t needed_from() const;
};

using BeamGroups = std::unordered_map<RequestId, std::unique_ptr<BeamGroup>>; // by request, until all of it has ended

BeamGroup* find_group(const BeamGroups&, const Sequence&); // null: it is no beam, or its search has ended

}  // namespace patchbay::engine
