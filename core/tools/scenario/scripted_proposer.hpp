// A proposer that says what its script says, so that drafts go the way of every proposer's. Used by scenario/play.cpp.
#pragma once
#include <map>

#include "host/component.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

using DraftsById = std::map<engine::RequestId, std::vector<Tokens>>; // by path

// Drafts are taken out of `drafts` when their sequence is asked for. The map outlives the component.
Result<host::Proposer> scripted_proposer(DraftsById& drafts);

}  // namespace patchbay::scenario
