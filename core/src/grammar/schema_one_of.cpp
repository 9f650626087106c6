#include "grammar/schema_one_of.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <tuple>

#include "base/refusals.hpp"
#include "grammar/schema_keywords.hpp"
#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

bool requires_member(const Json& s, const std::string& name) {
    return s.contains("required") && s["required"].is_array() &&
           std::find(s["required"].begin(), s["required"].end(), Json(name)) != s["required"].end();
}

}  // namespace

Result<std::vector<SchemaSources>> OneOf::branches(const SchemaSource& source) const {
    const auto placed = [&](std::vector<SchemaSources> branches) {
        for (SchemaSources& branch : branches)
            for (SchemaSource& each : branch) each = source.placed(each);
        return branches;
    };
    const auto [at, fresh] = branches_.try_emplace(source.schema);
    if (!fresh) return placed(at->second);
    const Json& parts = (*source.schema)["oneOf"];
    if (parts.size() > 200) return invalid(source.path + "/oneOf: more than 200 schemas");
    std::vector<SchemaSources> out;
    for (size_t i = 0; i < parts.size(); ++i) out.push_back({source.at("oneOf/" + std::to_string(i), parts[i])});
    for (size_t i = 0; i < parts.size(); ++i)
        for (size_t k = i + 1; k < parts.size(); ++k) {
            if (disjoint(parts[i], parts[k], 0)) continue;
            const SchemaSource first = out[i].front(), second = out[k].front();
            out[i].push_back(made_.negation(second));
            out[k].push_back(made_.negation(first));
        }
    branches_[source.schema] = out;
    return placed(std::move(out));
}

// Whether it is plain to see that no value is right for both.
bool OneOf::disjoint(const Json& x, const Json& y, int depth) const {
    const Json &a = resolver_.followed(x), &b = resolver_.followed(y);
    if (a == false || b == false) return true;
    const auto left = values_of(a), right = values_of(b);
    if (!a.is_object() || !b.is_object() || depth > 4 || !pays(4 + cost_of(left, right))) return false;
    const auto explicit_types = [](const Json& s) -> uint32_t {
        if (!s.contains("type") && values_of(s).empty()) return kAnyType;
        const auto types = types_of({&s, ""});
        return types ? types->allowed : uint32_t{kAnyType};
    };
    if ((explicit_types(a) & explicit_types(b)) == 0) return true;
    if (!left.empty() && !right.empty() && std::none_of(left.begin(), left.end(), [&](const Json& v) {
            return std::any_of(right.begin(), right.end(), [&](const Json& other) { return same_value(v, other); });
        }))
        return true;
    const auto apart = [](const Json& low, const Json& high, const char* max, const char* min) {
        return low.contains(max) && high.contains(min) && low[max].is_number() && high[min].is_number() &&
               low[max].get<double>() < high[min].get<double>();
    };
    const uint32_t both = explicit_types(a) | explicit_types(b);
    for (const auto& [bits, max, min] :
         {std::tuple{uint32_t{kNumber}, "maximum", "minimum"}, std::tuple{uint32_t{kString}, "maxLength", "minLength"},
          std::tuple{uint32_t{kArray}, "maxItems", "minItems"}})
        if ((both & ~bits) == 0 && (apart(a, b, max, min) || apart(b, a, max, min))) return true;
    if (both != kObject) return false;
    const auto one_way = [&](const Json& p, const Json& q) { // p requires what q has otherwise, or not at all
        if (!p.contains("required") || !p["required"].is_array()) return false;
        return std::any_of(p["required"].begin(), p["required"].end(), [&](const Json& name) {
            const auto size = [](const Json& s, const char* k) { return s.contains(k) ? s[k].size() : size_t{0}; };
            if (!name.is_string() ||
                !pays(1 + size(q, "required") + (size(p, "properties") + size(q, "properties")) / 8))
                return false;
            const auto& key = name.get_ref<const std::string&>();
            const bool in_q = q.contains("properties") && q["properties"].contains(key);
            if (!in_q)
                return q.contains("additionalProperties") && q["additionalProperties"] == false &&
                       !q.contains("patternProperties");
            return requires_member(q, key) && p.contains("properties") && p["properties"].contains(key) &&
                   disjoint(p["properties"][key], q["properties"][key], depth + 1);
        });
    };
    return one_way(a, b) || one_way(b, a);
}

bool OneOf::pays(uint64_t n) const {
    const bool enough = n <= comparisons_;
    comparisons_ = enough ? comparisons_ - n : 0;
    return enough;
}

}  // namespace patchbay::grammar
