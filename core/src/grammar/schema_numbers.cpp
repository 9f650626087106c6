#include "grammar/schema_numbers.hpp"

#include <utility>
#include <vector>

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
        const auto [known, fresh] = steps_.try_emplace(m.dump());
        if (fresh) {
            const auto e = multiple_of(rules_, m, work_);
            if (!e) return prefixed(c.path + "/multipleOf", e.failure());
            known->second = *e;
        }
        parts.push_back(known->second);
    }
    for (const Json& m : c.not_multiples) { // of whole numbers
        const auto e = multiple_of(rules_, m, work_);
        if (!e) return prefixed(c.path + "/not/multipleOf", e.failure());
        unequal.push_back(*e);
    }
    PB_TRY(const ExprId all, common_to(rules_, parts, work_));
    return without_any(rules_, all, std::move(unequal), work_);
}

}  // namespace patchbay::grammar
