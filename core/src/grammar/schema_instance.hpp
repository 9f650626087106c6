// Whether a known value is valid by a schema. For `enum` and `const` beside other keywords.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "grammar/schema_negation.hpp"

namespace patchbay::grammar {

struct InstanceCheck {
    FollowReference follow;
    std::function<std::optional<bool>(const std::string& pattern, const std::string& text)> matches;
    // None: it depends on a keyword that is not evaluated, or takes too many steps.
    std::optional<bool> valid(const Json& schema, const Json& value) const;
    mutable uint64_t steps = 200'000; // left
};

}  // namespace patchbay::grammar
