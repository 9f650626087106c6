#include "grammar/schema_numbers.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/refusals.hpp"
#include "grammar/json_numbers.hpp"
#include "grammar/regular_sets.hpp"

namespace patchbay::grammar {

Result<ExprId> SchemaNumbers::under(const Constraints& c) {
    const bool whole = !(c.types & kFraction);
    const bool broken = !(c.types & kInteger); // no whole numbers
    std::vector<ExprId> unequal;
    for (const Json* v : c.excluded) {
        if (!v->is_number()) continue;
        PB_TRY(const ExprId e, equal_to(rules_, *v, work_));
        unequal.push_back(e);
    }
    if (!c.restricts_numbers() && !broken && unequal.empty()) return whole ? text_.integer() : text_.number();
    std::vector<ExprId> parts;
    if (whole) parts.push_back(text_.integer());
    // Few digits: a reader that rounds must not make another number of them.
    if (broken) parts.push_back(text_.regex(R"(-?(0|[1-9][0-9]{0,7})\.[0-9]{0,6}[1-9])"));
    if (!unequal.empty() && !whole) parts.push_back(text_.regex(R"(-?(0|[1-9][0-9]{0,7})(\.[0-9]{1,7})?)"));
    for (const NumberBound& b : c.bounds) {
        const auto e = bounded(rules_, b, work_);
        if (!e) return fail(e.code(), c.path + ": a bound " + e.error());
        parts.push_back(*e);
    }
    for (const Json& m : c.multiples) {
        PB_TRY(const ExprId e, multiples(m, c.path + "/multipleOf"));
        parts.push_back(e);
    }
    for (const Json& m : c.not_multiples) { // of whole numbers
        PB_TRY(const ExprId e, multiples(m, c.path + "/not/multipleOf"));
        unequal.push_back(e);
    }
    PB_TRY(const ExprId all, common_to(rules_, parts, work_));
    return without_any(rules_, all, std::move(unequal), work_);
}

Result<bool> SchemaNumbers::allows(const Constraints& c, const Json& listed) {
    if (!std::ranges::all_of(c.bounds, [&](const NumberBound& b) { return is_within(b, listed); })) return false;
    const std::string text = plain_decimal(listed);
    for (const auto& [steps, path, wanted] : {std::tuple{&c.multiples, "/multipleOf", true},
                                              std::tuple{&c.not_multiples, "/not/multipleOf", false}})
        for (const Json& step : *steps) {
            PB_TRY(const ExprId e, multiples(step, c.path + path));
            PB_CHECK(work_.spend(text.size()));
            if (rules_[e].automaton->matches(text) != wanted) return false;
        }
    return true;
}

Result<ExprId> SchemaNumbers::multiples(const Json& step, const std::string& path) {
    const std::string key = step.dump();
    if (const auto known = steps_.find(key); known != steps_.end()) return known->second;
    const auto e = multiple_of(rules_, step, work_);
    if (!e) return prefixed(path, e.failure());
    if (!rules_.fault().empty()) return invalid(rules_.fault());
    return steps_[key] = *e;
}

}  // namespace patchbay::grammar
