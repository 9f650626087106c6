#include "grammar/schema_constraints.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "grammar/json_formats.hpp"

namespace patchbay::grammar {
namespace {

constexpr uint32_t kMaxCount = 20'000; // lengths and numbers of items; more must not be asked for
constexpr size_t kMaxPrefixItems = 200, kMaxValues = 10'000;

Result<uint32_t> count_of(const SchemaSource& s, const char* keyword) {
    const Json& value = (*s.schema)[keyword];
    const bool whole = value.is_number_unsigned() ||
                       (value.is_number_float() && value.get<double>() >= 0 && value.get<double>() <= kMaxCount &&
                        value.get<double>() == static_cast<uint32_t>(value.get<double>()));
    if (!whole)
        return fail(s.path + "/" + keyword + ": is " + value.dump().substr(0, 40) + ", expected a whole number");
    const uint64_t n = value.is_number_float() ? static_cast<uint64_t>(value.get<double>()) : value.get<uint64_t>();
    if (n > kMaxCount)
        return fail(s.path + "/" + keyword + ": is " + std::to_string(n) + ", expected at most " +
                    std::to_string(kMaxCount));
    return static_cast<uint32_t>(n);
}

Result<> narrow(const SchemaSource& s, const char* min, const char* max, CountRange& range) {
    if (s.schema->contains(min)) {
        PB_TRY(const uint32_t n, count_of(s, min));
        range.min = std::max(range.min, n);
    }
    if (s.schema->contains(max)) {
        PB_TRY(const uint32_t n, count_of(s, max));
        range.max = std::min(range.max, n);
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
            return fail(s.path + "/enum: is no list, or one of more than " + std::to_string(kMaxValues) + " values");
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

Result<> check_list(const SchemaSource& s, const char* keyword) {
    if (s.schema->contains(keyword) && !(*s.schema)[keyword].is_array())
        return fail(s.path + "/" + keyword + ": is no list");
    return {};
}

}  // namespace

Result<Constraints> Constraints::of(const FlatSchema& flat, Work& work) {
    Constraints out;
    out.path = flat.all.empty() ? "#" : flat.all.front().path;
    for (const SchemaSource& source : flat.all) {
        const Json& s = *source.schema;
        PB_TRY(const uint32_t types, types_of(source));
        out.types &= types;
        PB_CHECK(narrow_values(source, out, work));
        using Side = NumberBound::Side;
        using Limit = NumberBound::Limit;
        for (const auto& [keyword, side, limit] : {std::tuple{"minimum", Side::kMinimum, Limit::kIncluded},
                                                   std::tuple{"exclusiveMinimum", Side::kMinimum, Limit::kExcluded},
                                                   std::tuple{"maximum", Side::kMaximum, Limit::kIncluded},
                                                   std::tuple{"exclusiveMaximum", Side::kMaximum, Limit::kExcluded}}) {
            if (!s.contains(keyword)) continue;
            if (!s[keyword].is_number())
                return fail(source.path + "/" + keyword + ": is " + s[keyword].dump().substr(0, 40) +
                            ", expected a number");
            out.bounds.push_back({s[keyword], side, limit});
        }
        if (s.contains("multipleOf")) out.multiples.push_back(s["multipleOf"]);
        PB_CHECK(narrow(source, "minLength", "maxLength", out.length));
        PB_CHECK(narrow(source, "minItems", "maxItems", out.items));
        PB_CHECK(narrow(source, "minProperties", "maxProperties", out.members));
        for (const char* keyword : {"pattern", "format"}) {
            if (!s.contains(keyword)) continue;
            if (!s[keyword].is_string()) return fail(source.path + "/" + keyword + ": is no text");
            std::string text = s[keyword].get<std::string>();
            const std::string path = source.path + "/" + keyword;
            const bool format = std::string_view(keyword) == "format";
            if (format) {
                auto regex = format_regex(text);
                if (!regex) return fail(path + ": " + regex.error());
                text = *std::move(regex);
            }
            out.texts.push_back(
                {std::move(text), format ? RegexDialect::Match::kWhole : RegexDialect::Match::kAnywhere, path});
        }
        if (s.contains("uniqueItems") && s["uniqueItems"] != false)
            return fail(source.path + ": keyword 'uniqueItems' is not supported");
    }
    return out;
}

Result<ObjectMembers> ObjectMembers::of(const SchemaSources& sources, Work& work) {
    std::vector<std::string> names;
    std::set<std::string> known, required;
    bool describes = false, allows = false;
    bool closed = false; // by unevaluatedProperties
    std::vector<std::unordered_map<std::string_view, const Json*>> described; // by source
    const auto name = [&](const std::string& n) {
        if (known.insert(n).second) names.push_back(n);
    };
    for (const SchemaSource& source : sources) {
        const Json& s = *source.schema;
        described.emplace_back();
        if (s.contains("properties")) {
            if (!s["properties"].is_object()) return fail(source.path + "/properties: is no object");
            PB_CHECK(work.spend(s["properties"].size()));
            for (const auto& [key, value] : s["properties"].get_ref<const Json::object_t&>()) {
                name(key);
                described.back().emplace(key, &value);
            }
            describes = true;
        }
        for (const char* keyword : {"additionalProperties", "unevaluatedProperties"})
            if (s.contains(keyword)) {
                const Json& others = s[keyword];
                if (std::string_view(keyword) == "unevaluatedProperties" && others != false)
                    return fail(source.path + ": keyword 'unevaluatedProperties' is supported only as false");
                closed = closed || std::string_view(keyword) == "unevaluatedProperties";
                if (others == false)
                    describes = true;
                else
                    allows = true;
            }
    }
    for (const SchemaSource& source : sources) {
        PB_CHECK(check_list(source, "required"));
        if (!source.schema->contains("required")) continue;
        PB_CHECK(work.spend((*source.schema)["required"].size()));
        for (const Json& each : (*source.schema)["required"]) {
            if (!each.is_string()) return fail(source.path + "/required: is no list of names");
            name(each.get<std::string>());
            required.insert(each.get<std::string>());
        }
    }
    if (known.size() > SchemaText::kMaxMembers || known.size() * sources.size() > 100'000)
        return fail(sources.front().path + ": more than " + std::to_string(SchemaText::kMaxMembers) +
                    " names of members hold together");
    PB_CHECK(work.spend(20 * known.size() * sources.size()));
    // What a schema says of a member that it does not name. false: it may not be there.
    const auto unnamed = [](const SchemaSource& source, SchemaSources& value) {
        const Json& s = *source.schema;
        if (!s.contains("additionalProperties")) return true;
        if (s["additionalProperties"] == false) return false;
        value.push_back(source.at("additionalProperties", s["additionalProperties"]));
        return true;
    };
    ObjectMembers out;
    for (const std::string& n : names) {
        Member member{n, {}, required.contains(n)};
        bool may = true, seen = allows; // seen: some schema says something of it
        for (size_t i = 0; i < sources.size(); ++i) {
            const auto own = described[i].find(n);
            if (own == described[i].end()) {
                may = unnamed(sources[i], member.value) && may;
                continue;
            }
            member.value.push_back(sources[i].at("properties/" + n, *own->second));
            seen = true;
            may = may && *own->second != false;
        }
        may = may && (seen || !closed);
        if (may) {
            out.named.push_back(std::move(member));
        } else {
            out.impossible = out.impossible || member.required;
            out.forbidden.push_back(n);
        }
    }
    SchemaSources others;
    bool may = allows || !describes; // what the schemas do not name is left out, unless they ask for it
    for (const SchemaSource& source : sources) may = unnamed(source, others) && may;
    if (may) out.others = std::move(others);
    return out;
}

Result<ArrayItems> ArrayItems::of(const SchemaSources& sources) {
    ArrayItems out;
    size_t most = 0;
    for (const SchemaSource& source : sources) {
        PB_CHECK(check_list(source, "prefixItems"));
        const Json& s = *source.schema;
        if (s.contains("prefixItems")) most = std::max(most, s["prefixItems"].size());
        if (s.contains("items") && s["items"].is_array())
            return fail(source.path + "/items: is a list, which is not supported (write prefixItems)");
    }
    if (most > kMaxPrefixItems)
        return fail(sources.front().path + ": more than " + std::to_string(kMaxPrefixItems) + " prefixItems");
    out.first.resize(most);
    size_t allowed = most; // positions that no `items: false` forbids
    for (const SchemaSource& source : sources) {
        const Json& s = *source.schema;
        const size_t own = s.contains("prefixItems") ? s["prefixItems"].size() : 0;
        for (size_t i = 0; i < own; ++i)
            out.first[i].push_back(source.at("prefixItems/" + std::to_string(i), s["prefixItems"][i]));
        if (!s.contains("items")) continue;
        const SchemaSource rest = source.at("items", s["items"]);
        if (*rest.schema == false) {
            out.has_rest = false;
            allowed = std::min(allowed, own);
        }
        for (size_t i = own; i < out.first.size(); ++i) out.first[i].push_back(rest);
        out.rest.push_back(rest);
    }
    out.first.resize(allowed);
    return out;
}

}  // namespace patchbay::grammar
