// Which requests follow which: turns of a conversation, and requests of one user in a closed loop.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experiment/draws.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

struct Turn {
    uint32_t session = 0;            // from 0, by their first turns
    std::optional<uint32_t> follows; // the request that must be done first
    uint64_t think_ns = 0;           // then so long
    bool continues = false;          // its prompt begins with all that was said before it
};

// One a request. rows: of the trace, or none.
std::vector<Turn> plan_turns(const WorkloadSpec&, const Draws&, std::span<const TraceRow> rows, uint32_t count);

}  // namespace patchbay::experiment
