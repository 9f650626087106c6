#include "grammar/schema_sources.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "grammar/exact_numbers.hpp"
#include "grammar/json_formats.hpp"
#include "grammar/schema_negation.hpp"
#include "grammar/schema_references.hpp"

namespace patchbay::grammar {
namespace {

constexpr int kMaxReferences = 64; // and allOfs inside each other

struct Keyword {
    std::string_view name;
    uint32_t types; // that it is about; 0: not about one
    enum class Kind { kAsserts, kApplies } kind = Kind::kAsserts;
};
constexpr auto kApplies = Keyword::Kind::kApplies;
// All others are annotations, or belong to one of these.
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
    return fail(path + "/type: " + name.dump().substr(0, 40) +
                " is no type (array, boolean, integer, null, number, object, string)");
}

uint32_t type_of_value(const Json& v) {
    if (v.is_null()) return kNull;
    if (v.is_boolean()) return kBoolean;
    if (v.is_string()) return kString;
    if (v.is_array()) return kArray;
    if (v.is_object()) return kObject;
    return v.is_number_integer() || std::trunc(v.get<double>()) == v.get<double>() ? kInteger : kFraction;
}

bool requires_member(const Json& s, const std::string& name) {
    return s.contains("required") && s["required"].is_array() &&
           std::find(s["required"].begin(), s["required"].end(), Json(name)) != s["required"].end();
}

bool whole_as(int64_t n, double d) {
    return d >= -0x1p63 && d < 0x1p63 && std::trunc(d) == d && static_cast<int64_t>(d) == n;
}

bool whole_as(uint64_t n, double d) {
    return d >= 0 && d < 0x1p64 && std::trunc(d) == d && static_cast<uint64_t>(d) == n;
}

}  // namespace

std::span<const Json> values_of(const Json& s) {
    if (s.contains("const")) return {&s["const"], 1};
    if (s.contains("enum") && s["enum"].is_array()) return s["enum"].get_ref<const Json::array_t&>();
    return {};
}

bool same_value(const Json& a, const Json& b) {
    if (a.is_number_integer() && b.is_number_float()) // as doubles, large ones would be the same
        return a.is_number_unsigned() ? whole_as(a.get<uint64_t>(), b.get<double>())
                                      : whole_as(a.get<int64_t>(), b.get<double>());
    if (a.is_number_float() && b.is_number_integer()) return same_value(b, a);
    if (!a.is_structured() || a.is_array() != b.is_array() || a.is_object() != b.is_object()) return a == b;
    if (a.size() != b.size()) return false;
    if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), same_value);
    const auto& members = a.get_ref<const Json::object_t&>();
    return std::all_of(members.begin(), members.end(), [&](const auto& member) {
        const auto at = b.find(member.first);
        return at != b.end() && same_value(member.second, *at);
    });
}

uint64_t cost_of(const Json& v) {
    uint64_t out = 1 + (v.is_object() ? v.size() * v.size() : 0);
    if (v.is_string()) out += v.get_ref<const std::string&>().size() / 32;
    if (v.is_structured())
        for (const Json& part : v) out += cost_of(part);
    return out;
}

uint64_t cost_of(std::span<const Json> a, std::span<const Json> b) {
    uint64_t of_a = 0, of_b = 0;
    for (const Json& v : a) of_a += cost_of(v);
    for (const Json& v : b) of_b += cost_of(v);
    return of_a + of_b + std::min(of_a * b.size(), of_b * a.size());
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

Result<Json> SchemaText::parse(std::string_view text) {
    if (text.size() > kMaxBytes)
        return fail("a schema of " + std::to_string(text.size()) + " bytes, expected at most " +
                    std::to_string(kMaxBytes));
    std::string refused;
    std::vector<size_t> members; // of the objects around
    const auto look = [&](int depth, Json::parse_event_t event, Json&) {
        if (depth > kMaxDepth) refused = "nests deeper than " + std::to_string(kMaxDepth);
        if (event == Json::parse_event_t::object_start) members.push_back(0);
        if (event == Json::parse_event_t::object_end && !members.empty()) members.pop_back();
        if (event == Json::parse_event_t::key && !members.empty() && ++members.back() > kMaxMembers)
            refused = "has an object of more than " + std::to_string(kMaxMembers) + " members";
        return refused.empty();
    };
    try {
        Json out = Json::parse(text, look);
        if (!refused.empty()) return fail("the schema " + refused);
        PB_CHECK(check_numbers(text));
        localise_references(out);
        return out;
    } catch (const Json::exception& e) {
        const std::string what = e.what();
        return fail("the schema is not JSON: " + what.substr(std::min(what.size(), what.find("] ") + 2), 200));
    }
}

SchemaText::SchemaText(const Json& root) : root_(root), resources_(dynamic_anchors_of(root)) {}

SchemaSource SchemaText::root() const {
    SchemaSource out{&root_, "#"};
    if (!resources_.empty()) out.dynamic = &*dynamic_scopes_.emplace().first;
    return out;
}

Draft SchemaText::draft() const {
    if (!root_.is_object() || !root_.contains("$schema") || !root_["$schema"].is_string()) return Draft::k2020;
    const auto& name = root_["$schema"].get_ref<const std::string&>();
    if (name.find("2019-09") != name.npos) return Draft::k2019;
    return name.find("json-schema.org/draft-0") != name.npos ? Draft::kBefore2019 : Draft::k2020;
}

// The anchors of a resource hold where no outer one has any of their names.
const DynamicAnchors* SchemaText::within(const DynamicAnchors* outer, const Json* resource) const {
    const auto own = resources_.find(resource);
    if (!outer || own == resources_.end()) return outer;
    DynamicAnchors both = *outer;
    both.insert(own->second.begin(), own->second.end());
    return both.size() == outer->size() ? outer : &*dynamic_scopes_.insert(std::move(both)).first;
}

Result<SchemaSource> SchemaText::entered(SchemaSource source) const {
    const Json& s = *source.schema;
    if (source.entered || !s.is_object()) return source;
    if (source.dynamic && s.contains("$id") && !resources_.contains(&s))
        return fail(source.path + ": a schema with an $id under 'not', 'oneOf' or 'if' is not supported beside dynamic "
                                  "references");
    source.dynamic = within(source.dynamic, &s);
    if (s.contains("unevaluatedProperties") || s.contains("unevaluatedItems"))
        source.scope = &scopes_.try_emplace({&s, source.scope}, UnevaluatedScope{&s, source.scope}).first->second;
    return source;
}

Result<SchemaSource> SchemaText::resolve(const SchemaSource& source) const {
    auto known = resolved_.find(source.schema);
    if (known == resolved_.end()) {
        PB_TRY(Target target, look_up(source, "$ref"));
        known = resolved_.emplace(source.schema, std::move(target)).first;
    }
    SchemaSource out = source.placed(known->second.source);
    out.dynamic = within(source.dynamic, known->second.resource);
    return out;
}

// The outermost resource on the way here that has the name decides.
Result<SchemaSource> SchemaText::resolve_dynamic(const SchemaSource& source, const char* keyword) const {
    PB_TRY(Target target, look_up(source, keyword));
    if (!source.dynamic) return fail(source.path + ": keyword '" + keyword + "' is not supported here");
    const Json& first = *target.source.schema;
    std::string name;
    if (std::string_view(keyword) == "$dynamicRef" && first.is_object() && first.contains("$dynamicAnchor") &&
        first["$dynamicAnchor"].is_string())
        name = first["$dynamicAnchor"].get<std::string>();
    if (const auto at = source.dynamic->find(name); at != source.dynamic->end()) {
        target.source.schema = at->second.schema;
        target.resource = at->second.resource;
    }
    SchemaSource out = source.placed(target.source);
    out.dynamic = within(source.dynamic, target.resource);
    return out;
}

Result<SchemaText::Target> SchemaText::look_up(const SchemaSource& source, const char* keyword) const {
    const Json& ref = (*source.schema)[keyword];
    const auto refuse = [&](const std::string& why) {
        return fail(source.path + "/" + keyword + ": " + ref.dump().substr(0, 80) + " " + why);
    };
    if (!ref.is_string()) return refuse("is no text");
    const auto& text = ref.get_ref<const std::string&>();
    if (text != "#" && !text.starts_with("#/"))
        return refuse("is not supported (only places in the schema itself)");
    Target out{{&root_, "#"}, &root_};
    for (size_t at = 1; at < text.size();) {
        const size_t end = std::min(text.find('/', at + 1), text.size());
        std::string name;
        for (size_t i = at + 1; i < end; ++i) {
            if (text[i] == '~' && i + 1 < end && (text[i + 1] == '0' || text[i + 1] == '1'))
                name += text[++i] == '0' ? '~' : '/';
            else if (text[i] == '%' && i + 2 < end && std::isxdigit(static_cast<uint8_t>(text[i + 1])) &&
                     std::isxdigit(static_cast<uint8_t>(text[i + 2])))
                name += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)), i += 2;
            else
                name += text[i];
        }
        const Json& here = *out.source.schema;
        const Json* next = nullptr;
        if (here.is_object() && here.contains(name)) next = &here[name];
        if (here.is_array() && name.size() < 6 && !name.empty() && name.find_first_not_of("0123456789") == name.npos &&
            std::stoul(name) < here.size())
            next = &here[std::stoul(name)];
        if (!next) return refuse("is not in the schema");
        out.source = {next, text.substr(0, std::min<size_t>(end, 500))};
        if (resources_.contains(next)) out.resource = next;
        at = end;
    }
    return out;
}

Result<> SchemaText::add(const SchemaSource& given, FlatSchema& out, int depth) const {
    if (depth > kMaxReferences)
        return fail(given.path + ": refers to itself, or more than " + std::to_string(kMaxReferences) + " deep");
    PB_TRY(const SchemaSource source, entered(given));
    const Json& s = *source.schema;
    if (++out.seen > 1000) return fail(source.path + ": more than 1000 schemas hold together");
    out.cost += 1 + s.size();
    if (s.is_boolean()) {
        out.impossible = out.impossible || !s.get<bool>();
        return {};
    }
    if (!s.is_object()) return fail(source.path + ": is no schema: " + s.dump().substr(0, 40));
    bool asserts = false;
    for (const auto& member : s.get_ref<const Json::object_t&>()) {
        const auto known = std::find_if(kKeywords.begin(), kKeywords.end(),
                                        [&](const Keyword& k) { return k.name == member.first; });
        asserts = asserts || (known != kKeywords.end() && !applies(member.first, member.second));
    }
    PB_CHECK(add_parts(source, out, depth));
    if (asserts) out.all.push_back(source);
    return {};
}

bool SchemaText::applies(const std::string& keyword, const Json& value) {
    if (keyword == "not") return !is_plain_not(value);
    if (keyword == "$defs" || keyword == "definitions" || keyword == "then" || keyword == "else") return true;
    const auto known =
        std::find_if(kKeywords.begin(), kKeywords.end(), [&](const Keyword& k) { return k.name == keyword; });
    return known != kKeywords.end() && known->kind == Keyword::Kind::kApplies;
}

Result<> SchemaText::add_parts(const SchemaSource& source, FlatSchema& out, int depth) const {
    const Json& s = *source.schema;
    if (s.contains("$ref")) {
        PB_TRY(const SchemaSource target, resolve(source));
        PB_CHECK(add(target, out, depth + 1));
    }
    for (const char* keyword : {"$dynamicRef", "$recursiveRef"}) {
        if (!s.contains(keyword)) continue;
        PB_TRY(const SchemaSource target, resolve_dynamic(source, keyword));
        PB_CHECK(add(target, out, depth + 1));
    }
    for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
        if (!s.contains(keyword)) continue;
        const Json& parts = s[keyword];
        const std::string name = keyword;
        if (!parts.is_array() || parts.empty()) return fail(source.path + "/" + name + ": is no list of schemas");
        if (parts.size() > 1000) return fail(source.path + "/" + name + ": more than 1000 schemas");
        out.cost += parts.size();
        if (name == "oneOf") {
            PB_TRY(auto branches, one_of(source));
            out.choices.push_back(std::move(branches));
            continue;
        }
        std::vector<SchemaSources> branches;
        for (size_t i = 0; i < parts.size(); ++i) {
            const SchemaSource branch = source.beside(name + "/" + std::to_string(i), parts[i]);
            if (name == "anyOf")
                branches.push_back({branch});
            else
                PB_CHECK(add(branch, out, depth + 1));
        }
        if (name == "anyOf") out.choices.push_back(std::move(branches));
    }
    if (s.contains("not") && !is_plain_not(s["not"])) PB_CHECK(add_not(source.beside("not", s["not"]), out, depth));
    if (s.contains("if") && (s.contains("then") || s.contains("else"))) {
        const SchemaSource condition = source.beside("if", s["if"]);
        SchemaSources holds{condition}, fails{negation(condition)};
        if (s.contains("then")) holds.push_back(source.beside("then", s["then"]));
        if (s.contains("else")) fails.push_back(source.beside("else", s["else"]));
        out.choices.push_back({std::move(holds), std::move(fails)});
    }
    return add_dependencies(source, out);
}

SchemaSource SchemaText::negation(const SchemaSource& source) const {
    const auto [at, fresh] = negations_.try_emplace(source.schema, nullptr);
    if (fresh) at->second = &keep(Json{{"not", *source.schema}});
    SchemaSource out = source;
    out.schema = at->second;
    out.violates = true;
    out.entered = false;
    return out;
}

Result<> SchemaText::add_not(const SchemaSource& negated, FlatSchema& out, int depth) const {
    const auto [at, fresh] = violations_.try_emplace(negated.schema);
    SchemaSources& ways = at->second;
    if (fresh) {
        const FollowReference follow = [&](const Json& with_ref) -> const Json* {
            if (negated.dynamic) return nullptr; // a copy would not know on which way it was found
            const auto target = resolve({&with_ref, negated.path});
            return target ? target->schema : nullptr;
        };
        for (Json& each : violations_of(*negated.schema, follow, copies_)) {
            SchemaSource way{&keep(std::move(each)), negated.path};
            way.violates = true;
            ways.push_back(std::move(way));
        }
    }
    if (copies_ == 0) return fail(negated.path + ": the schemas under 'not' and 'oneOf' are too large together");
    if (ways.empty()) {
        bool asserts = false;
        for (const Keyword& k : kKeywords) {
            if (!negated.schema->is_object() || !negated.schema->contains(k.name)) continue;
            asserts = true;
            if (k.kind == Keyword::Kind::kAsserts || (negated.dynamic && k.name.ends_with("Ref")))
                return fail(negated.path + ": keyword '" + std::string(k.name) + "' is not supported under 'not'");
        }
        if (asserts) return fail(negated.path + ": a 'not' of this schema is not supported");
        out.impossible = true; // all values are valid
        return {};
    }
    if (ways.size() == 1) return add(negated.placed(ways.front()), out, depth + 1);
    std::vector<SchemaSources> branches;
    for (const SchemaSource& each : ways) branches.push_back({negated.placed(each)});
    out.choices.push_back(std::move(branches));
    return {};
}

Result<> SchemaText::add_dependencies(const SchemaSource& source, FlatSchema& out) const {
    const auto [at, fresh] = dependencies_.try_emplace(source.schema);
    const Json& s = *source.schema;
    for (const char* keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
        if (!fresh || !s.contains(keyword)) continue;
        if (!s[keyword].is_object()) return fail(source.path + "/" + keyword + ": is no object");
        for (const auto& [name, needs] : s[keyword].get_ref<const Json::object_t&>()) {
            const SchemaSource part = source.at(keyword + ("/" + name), needs);
            Json required = Json::array({name});
            if (needs.is_array())
                for (const Json& other : needs) required.push_back(other);
            else if (needs.is_string()) // draft 3
                required.push_back(needs);
            const SchemaSource present{&keep(Json{{"required", std::move(required)}}), part.path};
            const SchemaSource absent{&keep(Json{{"properties", Json{{name, false}}}}), part.path};
            SchemaSources holds{present};
            if (!needs.is_array() && !needs.is_string()) holds.push_back(part);
            at->second.push_back({{absent}, std::move(holds)});
        }
    }
    for (std::vector<SchemaSources> ways : at->second) {
        for (SchemaSources& way : ways)
            for (SchemaSource& each : way) each = source.placed(each);
        out.choices.push_back(std::move(ways));
    }
    return {};
}

Result<FlatSchema> SchemaText::flat(const SchemaSources& sources) const {
    FlatSchema out;
    for (const SchemaSource& s : sources) PB_CHECK(add(s, out, 0));
    return out;
}

const Json& SchemaText::followed(const Json& schema) const {
    const Json* at = &schema;
    for (int i = 0; i < kMaxReferences && at->is_object() && at->contains("$ref"); ++i) {
        const auto target = resolve({at, "#"});
        if (!target) break;
        at = target->schema;
    }
    return *at;
}

// Exactly one of them must hold: what is generated for one branch violates those that it may fit besides.
Result<std::vector<SchemaSources>> SchemaText::one_of(const SchemaSource& source) const {
    const auto placed = [&](std::vector<SchemaSources> branches) {
        for (SchemaSources& branch : branches)
            for (SchemaSource& each : branch) each = source.placed(each);
        return branches;
    };
    const auto [at, fresh] = one_of_.try_emplace(source.schema);
    if (!fresh) return placed(at->second);
    const Json& parts = (*source.schema)["oneOf"];
    if (parts.size() > 200) return fail(source.path + "/oneOf: more than 200 schemas");
    std::vector<SchemaSources> out;
    for (size_t i = 0; i < parts.size(); ++i) out.push_back({source.at("oneOf/" + std::to_string(i), parts[i])});
    for (size_t i = 0; i < parts.size(); ++i)
        for (size_t k = i + 1; k < parts.size(); ++k) {
            if (disjoint(parts[i], parts[k], 0)) continue;
            const SchemaSource first = out[i].front(), second = out[k].front();
            out[i].push_back(negation(second));
            out[k].push_back(negation(first));
        }
    one_of_[source.schema] = out;
    return placed(std::move(out));
}

// Whether it is plain to see that no value is right for both.
bool SchemaText::disjoint(const Json& x, const Json& y, int depth) const {
    const Json &a = followed(x), &b = followed(y);
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
    const auto apart = [](const Json& low, const Json& high, const char* most, const char* least) {
        return low.contains(most) && high.contains(least) && low[most].is_number() && high[least].is_number() &&
               low[most].get<double>() < high[least].get<double>();
    };
    const uint32_t both = explicit_types(a) | explicit_types(b);
    for (const auto& [bits, most, least] :
         {std::tuple{uint32_t{kNumber}, "maximum", "minimum"}, std::tuple{uint32_t{kString}, "maxLength", "minLength"},
          std::tuple{uint32_t{kArray}, "maxItems", "minItems"}})
        if ((both & ~bits) == 0 && (apart(a, b, most, least) || apart(b, a, most, least))) return true;
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
            if (!in_q) return q.contains("additionalProperties") && q["additionalProperties"] == false;
            return requires_member(q, key) && p.contains("properties") && p["properties"].contains(key) &&
                   disjoint(p["properties"][key], q["properties"][key], depth + 1);
        });
    };
    return one_way(a, b) || one_way(b, a);
}

}  // namespace patchbay::grammar
