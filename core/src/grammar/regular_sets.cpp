#include "grammar/regular_sets.hpp"

#include <cstddef>
#include <utility>

#include "grammar/automaton.hpp"

namespace patchbay::grammar {

Result<ExprId> common_to(Rules& rules, const std::vector<ExprId>& parts, Work& work) {
    if (parts.size() == 1) return parts[0];
    PB_TRY(Dfa both, regular(rules, parts[0], work));
    for (size_t i = 1; i < parts.size(); ++i) {
        PB_TRY(const Dfa next, regular(rules, parts[i], work));
        PB_TRY(both, common(both, next, work));
    }
    return rules.automaton(std::move(both));
}

Result<ExprId> without_any(Rules& rules, ExprId e, std::vector<ExprId> excluded, Work& work) {
    if (excluded.empty()) return e;
    PB_TRY(const Dfa all, regular(rules, e, work));
    PB_TRY(const Dfa none, regular(rules, rules.choice(std::move(excluded)), work));
    PB_TRY(Dfa rest, without(all, none, work));
    return rules.automaton(std::move(rest));
}

}  // namespace patchbay::grammar
