// Members or items of which so many must be there. For the JSON Schema front end.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace patchbay::grammar {

struct CountRange {
    uint32_t min = 0, max = kUnbounded;
};

// Parts in order, with separators; their number is limited. Each but the last counts as one. path: for messages.
Result<ExprId> counted_parts(Rules&, ExprId separator, const std::vector<JoinedPart>&, CountRange,
                             const std::string& path);

}  // namespace patchbay::grammar
