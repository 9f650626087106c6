// A proposer that is a function of this process, so that drafts go the way of every proposer's. For scenarios, tests.
#pragma once
#include <functional>

#include "host/component.hpp"

namespace patchbay::host {

using Propose = std::function<pb_status(pb_propose_batch&)>;

Result<Proposer> function_proposer(Propose);

}  // namespace patchbay::host
