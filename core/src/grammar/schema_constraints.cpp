#include "grammar/schema_constraints.hpp"

#include <algorithm>

#include "base/refusals.hpp"
#include "grammar/json_formats.hpp"
#include "grammar/schema_negation.hpp"
#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

constexpr uint32_t kMaxMinimum = 20'000, kMaxMaximum = 1'000'000; // lengths and numbers of items
constexpr size_t kMaxValues = 10'000;

Result<> narrow(const SchemaSource& s, const char* min, const char* max, CountRange& range) {
    if (s.schema->contains(min)) {
        PB_TRY(const uint64_t n, count_of(s, min));
        if (n > kMaxMinimum)
            return invalid(s.path + "/" + min + ": is " + std::to_string(n) + ", expected at most " +
                           std::to_string(kMaxMinimum));
        range.min = std::max(range.min, static_cast<uint32_t>(n));
    }
    if (s.schema->contains(max)) {
        PB_TRY(const uint64_t n, count_of(s, max));
        range.max = std::min(range.max, static_cast<uint32_t>(std::min<uint64_t>(n, kMaxMaximum)));
    }
    return {};
}

Result<> narrow_values(const SchemaSource& s, Constraints& out, Work& work) {
    for (const char* keyword : {"enum", "const"}) {
        if (!s.schema->contains(keyword)) continue;
        const Json& given = (*s.schema)[keyword];
        std::vector<const Json*> values;
        if (std::string_view(keyword) == "const")
            values = {&given};
        else if (given.is_array() && given.size() <= kMaxValues)
            for (const Json& v : given) values.push_back(&v);
        else
            return invalid(s.path + "/enum: is not an array, or has more than " + std::to_string(kMaxValues) +
                           " values");
        PB_CHECK(work.spend(4 * values.size()));
        if (!out.values) {
            out.values = std::move(values);
            continue;
        }
        uint64_t of_values = 0, of_known = 0; // the smaller one of two bounds what comparing them costs
        for (const Json* v : values) of_values += cost_of(*v);
        for (const Json* v : *out.values) of_known += cost_of(*v);
        PB_CHECK(work.spend(of_values + of_known));
        PB_CHECK(work.spend(std::min(of_values * out.values->size(), of_known * values.size())));
        std::erase_if(*out.values, [&](const Json* v) {
            return std::none_of(values.begin(), values.end(), [&](const Json* w) { return same_value(*v, *w); });
        });
    }
    return {};
}

}  // namespace

Result<uint64_t> count_of(const SchemaSource& s, const char* keyword) {
    const Json& value = (*s.schema)[keyword];
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    const double d = value.is_number_float() ? value.get<double>() : -1;
    if (d < 0 || d > 1e15 || d != static_cast<double>(static_cast<uint64_t>(d)))
        return invalid(s.path + "/" + keyword + ": is " + value.dump().substr(0, 40) + ", expected a whole number");
    return static_cast<uint64_t>(d);
}

bool Constraints::excludes(const Json& value) const {
    return std::ranges::any_of(excluded, [&](const Json* e) { return same_value(*e, value); });
}

Result<Constraints> Constraints::of(const FlatSchema& flat, Work& work) {
    Constraints out;
    out.path = flat.all.empty() ? "#" : flat.all.front().path;
    bool given = false;
    uint32_t about = 0;
    for (const SchemaSource& source : flat.all) {
        const Json& s = *source.schema;
        PB_TRY(const SchemaTypes types, types_of(source));
        out.types &= types.allowed;
        given = given || types.given;
        about |= types.about;
        PB_CHECK(narrow_values(source, out, work));
        using Side = NumberBound::Side;
        using Limit = NumberBound::Limit;
        for (const auto& [keyword, side, limit] : {std::tuple{"minimum", Side::kMinimum, Limit::kIncluded},
                                                   std::tuple{"exclusiveMinimum", Side::kMinimum, Limit::kExcluded},
                                                   std::tuple{"maximum", Side::kMaximum, Limit::kIncluded},
                                                   std::tuple{"exclusiveMaximum", Side::kMaximum, Limit::kExcluded}}) {
            if (!s.contains(keyword)) continue;
            if (limit == Limit::kExcluded && s[keyword].is_boolean()) continue; // draft 4: of the other bound
            if (!s[keyword].is_number())
                return invalid(source.path + "/" + keyword + ": is " + s[keyword].dump().substr(0, 40) +
                               ", expected a number");
            const char* strict = side == Side::kMinimum ? "exclusiveMinimum" : "exclusiveMaximum";
            const bool excluded = limit == Limit::kExcluded || (s.contains(strict) && s[strict] == true);
            out.bounds.push_back({s[keyword], side, excluded ? Limit::kExcluded : Limit::kIncluded});
        }
        if (s.contains("multipleOf")) out.multiples.push_back(s["multipleOf"]);
        PB_CHECK(narrow(source, "minLength", "maxLength", out.length));
        PB_CHECK(narrow(source, "minItems", "maxItems", out.items));
        PB_CHECK(narrow(source, "minProperties", "maxProperties", out.members));
        for (const char* keyword : {"pattern", "format"}) {
            if (!s.contains(keyword)) continue;
            if (!s[keyword].is_string()) return invalid(source.path + "/" + keyword + ": is not a string");
            std::string text = s[keyword].get<std::string>();
            const std::string path = source.path + "/" + keyword;
            const bool format = std::string_view(keyword) == "format";
            if (format) {
                auto regex = format_regex(text);
                if (!regex) continue; // an annotation
                text = *std::move(regex);
            }
            out.texts.push_back(
                {std::move(text), format ? RegexDialect::Match::kWhole : RegexDialect::Match::kAnywhere, path});
        }
        out.unique = out.unique || (s.contains("uniqueItems") && s["uniqueItems"] != false);
        if (!s.contains("not") || !is_plain_not(s["not"])) continue;
        const Json& forbidden = s["not"];
        if (forbidden.contains("pattern") && forbidden["pattern"].is_string())
            out.texts.push_back({forbidden["pattern"].get<std::string>(), RegexDialect::Match::kAnywhere,
                                 source.path + "/not/pattern", true});
        if (forbidden.contains("multipleOf")) out.not_multiples.push_back(forbidden["multipleOf"]);
        for (const Json& v : values_of(forbidden)) out.excluded.push_back(&v);
    }
    if (!given && about) out.types &= about; // without a type, they are read as being of those
    return out;
}

}  // namespace patchbay::grammar
