// What playing a scenario costs beyond the tokens that are computed, in units of about a microsecond: so that one limit
// bounds the time of whatever a file asks for. Used by scenario/player.cpp.
#pragma once
#include <map>

#include "engine/view.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

using Candidates = std::map<engine::RequestId, uint64_t>; // of each beam in a step, by its sequence

uint64_t candidates_of(const Arrival&, size_t eos_tokens);
uint64_t work_of_grammar_row(const Vocabulary&);
uint64_t work_of_step(const engine::View&, const Candidates&);
uint64_t work_of(const step::Expect&, const engine::View&, size_t requests);

}  // namespace patchbay::scenario
