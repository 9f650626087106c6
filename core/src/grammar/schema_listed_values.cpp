#include "grammar/schema_listed_values.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/refusals.hpp"
#include "grammar/schema_instance.hpp"

namespace patchbay::grammar {
namespace {

std::string unevaluated_keyword(const Json& schema) {
    for (const char* keyword : {"unevaluatedProperties", "unevaluatedItems", "pattern", "format"})
        if (schema.contains(keyword))
            return "keyword '" + std::string(keyword) +
                   "' beside an enum or const of arrays or objects is not supported";
    return "an enum or const of arrays or objects beside these keywords is not supported";
}

Result<bool> valid_by(const ListedValues& to, const SchemaSources& all, const Json& v) {
    const InstanceCheck check{[&](const Json& with_ref) -> const Json* {
                                  const auto target = to.schema.resolve({&with_ref, "#"});
                                  return target ? target->schema : nullptr;
                              },
                              [&](const std::string& pattern, const std::string& text) -> std::optional<bool> {
                                  const auto names = to.strings.matching(pattern, "#");
                                  const std::string spelled = JsonText::spelled(Json(text));
                                  if (!names) return std::nullopt;
                                  return names->matches(spelled.substr(1, spelled.size() - 2));
                              }};
    bool out = true;
    for (const SchemaSource& s : all) {
        const auto valid = check.valid(*s.schema, v);
        if (valid == false) out = false;
        if (!valid) return invalid(s.path + ": " + unevaluated_keyword(*s.schema));
        PB_CHECK(to.work.spend(100));
    }
    return out;
}

}  // namespace

Result<ExprId> listed_values_of(const ListedValues& to, const SchemaSources& all, const Constraints& c) {
    std::vector<ExprId> ways;
    for (const Json* value : *c.values) {
        const Json& v = *value;
        if (v.is_number()) {
            const bool whole = v.is_number_integer() || std::trunc(v.get<double>()) == v.get<double>();
            if (!(c.types & (whole ? kInteger : kFraction))) continue;
            PB_TRY(const bool valid, to.numbers.allows(c, v));
            if (!valid) continue;
        } else if (v.is_string()) {
            if (!(c.types & kString)) continue;
            PB_TRY(const bool valid, to.strings.allows(c, v));
            if (!valid) continue;
        } else if (v.is_structured()) {
            if (!(c.types & (v.is_array() ? kArray : kObject))) continue;
            PB_TRY(const bool valid, valid_by(to, all, v));
            if (!valid) continue;
        } else if (!(c.types & (v.is_null() ? kNull : kBoolean))) {
            continue;
        }
        PB_CHECK(to.work.spend(10 * c.excluded.size()));
        if (!c.excludes(v)) ways.push_back(to.text.literal(v));
    }
    return to.rules.choice(std::move(ways)); // none: nothing matches
}

}  // namespace patchbay::grammar
