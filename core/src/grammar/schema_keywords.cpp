#include "grammar/schema_keywords.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/refusals.hpp"
#include "grammar/json_formats.hpp"
#include "grammar/schema_negation.hpp"
#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

constexpr auto kApplies = Keyword::Kind::kApplies;
constexpr std::array kKeywords = std::to_array<Keyword>({
    {"type", 0},
    {"enum", 0},
    {"const", 0},
    {"$ref", 0, kApplies},
    {"allOf", 0, kApplies},
    {"anyOf", 0, kApplies},
    {"oneOf", 0, kApplies},
    {"minimum", kNumber},
    {"maximum", kNumber},
    {"exclusiveMinimum", kNumber},
    {"exclusiveMaximum", kNumber},
    {"multipleOf", kNumber},
    {"minLength", kString},
    {"maxLength", kString},
    {"pattern", kString},
    {"format", kString},
    {"items", kArray},
    {"prefixItems", kArray},
    {"minItems", kArray},
    {"maxItems", kArray},
    {"uniqueItems", kArray},
    {"properties", kObject},
    {"required", kObject},
    {"additionalProperties", kObject},
    {"minProperties", kObject},
    {"maxProperties", kObject},
    {"unevaluatedProperties", kObject},
    {"not", 0},
    {"if", 0, kApplies},
    {"dependentRequired", kObject, kApplies},
    {"dependentSchemas", kObject, kApplies},
    {"dependencies", kObject, kApplies},
    {"patternProperties", kObject},
    {"propertyNames", kObject},
    {"contains", kArray},
    {"unevaluatedItems", kArray},
    {"$dynamicRef", 0, kApplies},
    {"$recursiveRef", 0, kApplies},
});

struct Span { // of drafts that have a keyword
    std::string_view keyword;
    Draft first, last = Draft::k2020;
};
constexpr std::array kSpans = std::to_array<Span>({
    {"const", Draft::k6},
    {"contains", Draft::k6},
    {"propertyNames", Draft::k6},
    {"if", Draft::k7},
    {"dependentRequired", Draft::k2019},
    {"dependentSchemas", Draft::k2019},
    {"unevaluatedItems", Draft::k2019},
    {"unevaluatedProperties", Draft::k2019},
    {"minContains", Draft::k2019},
    {"maxContains", Draft::k2019},
    {"$anchor", Draft::k2019},
    {"$recursiveRef", Draft::k2019, Draft::k2019},
    {"$recursiveAnchor", Draft::k2019, Draft::k2019},
    {"prefixItems", Draft::k2020},
    {"$dynamicRef", Draft::k2020},
    {"$dynamicAnchor", Draft::k2020},
});

constexpr std::array kDrafts = std::to_array<std::pair<std::string_view, Draft>>({{"draft-03", Draft::k4},
                                                                                  {"draft-04", Draft::k4},
                                                                                  {"draft-05", Draft::k4},
                                                                                  {"draft-06", Draft::k6},
                                                                                  {"draft-07", Draft::k7},
                                                                                  {"2019-09", Draft::k2019},
                                                                                  {"2020-12", Draft::k2020}});

constexpr std::array kTypes = std::to_array<std::pair<std::string_view, uint32_t>>({{"null", kNull},
                                                                                    {"boolean", kBoolean},
                                                                                    {"string", kString},
                                                                                    {"integer", kInteger},
                                                                                    {"number", kNumber},
                                                                                    {"array", kArray},
                                                                                    {"object", kObject}});

Result<uint32_t> type_named(const Json& name, const std::string& path) {
    if (name.is_string())
        for (const auto& [known, bits] : kTypes)
            if (name.get_ref<const std::string&>() == known) return bits;
    return invalid(path + "/type: " + name.dump().substr(0, 40) +
                   " is not a type (array, boolean, integer, null, number, object, string)");
}

uint32_t type_of_value(const Json& v) {
    if (v.is_null()) return kNull;
    if (v.is_boolean()) return kBoolean;
    if (v.is_string()) return kString;
    if (v.is_array()) return kArray;
    if (v.is_object()) return kObject;
    return v.is_number_integer() || std::trunc(v.get<double>()) == v.get<double>() ? kInteger : kFraction;
}

const Keyword* find_keyword(std::string_view name) {
    const auto at = std::ranges::find(kKeywords, name, &Keyword::name);
    return at != kKeywords.end() ? &*at : nullptr;
}

}  // namespace

std::span<const Keyword> known_keywords() { return kKeywords; }

std::optional<Draft> draft_named(const Json& root) {
    if (!root.is_object() || !root.contains("$schema") || !root["$schema"].is_string()) return std::nullopt;
    const auto& named = root["$schema"].get_ref<const std::string&>();
    for (const auto& [name, draft] : kDrafts)
        if (named.find(name) != named.npos) return draft;
    return std::nullopt;
}

bool is_of(Draft draft, std::string_view keyword) {
    const auto at = std::ranges::find(kSpans, keyword, &Span::keyword);
    return at == kSpans.end() || (at->first <= draft && draft <= at->last);
}

Result<SchemaTypes> types_of(const SchemaSource& source) {
    const Json& s = *source.schema;
    SchemaTypes out;
    const auto bits_of = [&](const Json& type) -> Result<uint32_t> {
        if (!type.is_array()) return type_named(type, source.path);
        uint32_t bits = 0;
        for (const Json& each : type) {
            PB_TRY(const uint32_t one, type_named(each, source.path));
            bits |= one;
        }
        return bits;
    };
    if (s.contains("type")) {
        PB_TRY(const uint32_t bits, bits_of(s["type"]));
        out.allowed &= bits;
        out.given = true;
    }
    if (const auto values = values_of(s); !values.empty()) {
        uint32_t bits = 0;
        for (const Json& v : values) bits |= type_of_value(v);
        out.allowed &= bits;
        out.given = true;
    }
    if (s.contains("not") && is_plain_not(s["not"])) {
        if (s["not"].contains("type")) {
            PB_TRY(const uint32_t bits, bits_of(s["not"]["type"]));
            out.allowed &= ~bits;
        }
        if (s["not"].contains("pattern")) out.allowed &= kString; // all others satisfy the pattern
        if (s["not"].contains("multipleOf")) out.allowed &= kInteger; // likewise; fractions are left out
    }
    for (const Keyword& k : kKeywords) {
        if (k.types == 0 || !s.contains(k.name)) continue;
        if (k.name == "format" && !(s["format"].is_string() && format_regex(s["format"].get<std::string>()))) continue;
        out.about |= k.types;
    }
    return out;
}

bool applies(const std::string& keyword, const Json& value) {
    if (keyword == "not") return !is_plain_not(value);
    if (keyword == "$defs" || keyword == "definitions" || keyword == "then" || keyword == "else") return true;
    const Keyword* known = find_keyword(keyword);
    return known && known->kind == kApplies;
}

bool has_assertions(const Json::object_t& schema) {
    return std::ranges::any_of(schema, [](const auto& member) {
        return find_keyword(member.first) && !applies(member.first, member.second);
    });
}

}  // namespace patchbay::grammar
