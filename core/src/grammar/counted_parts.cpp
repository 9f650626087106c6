#include "grammar/counted_parts.hpp"

#include <algorithm>
#include <utility>

#include "base/refusals.hpp"

namespace patchbay::grammar {

Result<ExprId> counted_parts(Rules& rules, ExprId separator, const std::vector<JoinedPart>& parts, CountRange count,
                             const std::string& path) {
    const auto n = static_cast<uint32_t>(parts.size());
    if (count.min <= 1 && count.max >= n) return rules.joined(separator, parts);
    const uint32_t cap = count.max < n ? count.max : std::min(count.min, n);
    if (count.min > n) return rules.nothing();
    if (uint64_t{n} * cap > 10'000)
        return invalid(path + ": too many members or values to count them (" + std::to_string(n) + ")");
    std::vector<ExprId> after(cap + 2, rules.nothing()); // by how many there were
    for (uint32_t k = std::min(count.min, cap); k <= cap; ++k) after[k] = rules.empty();
    for (uint32_t i = n; i-- > 0;) {
        std::vector<ExprId> here(cap + 2, rules.nothing());
        for (uint32_t k = 0; k <= std::min(cap, i); ++k) {
            std::vector<ExprId> ways;
            const bool more = k < cap || count.max >= n; // a full count stays where there is no upper limit
            if (more) {
                const ExprId one = k > 0 ? rules.sequence({separator, parts[i].expr}) : parts[i].expr;
                ways.push_back(rules.sequence({one, after[std::min(k + 1, cap)]}));
            }
            if (parts[i].needed == JoinedPart::Needed::kMaybe) ways.push_back(after[k]);
            const RuleId rule = rules.declare("rest");
            rules.define(rule, rules.choice(std::move(ways)));
            here[k] = rules.rule(rule);
        }
        after = std::move(here);
    }
    return after[0];
}

}  // namespace patchbay::grammar
