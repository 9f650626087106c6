#include "grammar/schema_text.hpp"

#include <string>
#include <utility>

#include "base/refusals.hpp"
#include "grammar/schema_negation.hpp"

namespace patchbay::grammar {

SchemaText::SchemaText(const Json& root) : draft_(draft_named(root).value_or(Draft::k2020)), resolver_(root) {}

Result<FlatSchema> SchemaText::flat(const SchemaSources& sources) const {
    FlatSchema out;
    for (const SchemaSource& s : sources) PB_CHECK(add(s, out, 0));
    return out;
}

Result<> SchemaText::add(const SchemaSource& given, FlatSchema& out, int depth) const {
    if (depth > kMaxReferences)
        return invalid(given.path + ": refers to itself, or more than " + std::to_string(kMaxReferences) + " deep");
    PB_TRY(const SchemaSource source, resolver_.entered(given));
    const Json& s = *source.schema;
    if (++out.seen > 1000) return invalid(source.path + ": more than 1000 schemas hold together");
    out.cost += 1 + s.size();
    if (s.is_boolean()) {
        out.impossible = out.impossible || !s.get<bool>();
        return {};
    }
    if (!s.is_object()) return invalid(source.path + ": is not a schema: " + s.dump().substr(0, 40));
    PB_CHECK(add_parts(source, out, depth));
    if (has_assertions(s.get_ref<const Json::object_t&>())) out.all.push_back(source);
    return {};
}

Result<> SchemaText::add_parts(const SchemaSource& source, FlatSchema& out, int depth) const {
    const Json& s = *source.schema;
    if (s.contains("$ref")) {
        PB_TRY(const SchemaSource target, resolver_.resolve(source));
        PB_CHECK(add(target, out, depth + 1));
    }
    for (const char* keyword : {"$dynamicRef", "$recursiveRef"}) {
        if (!s.contains(keyword)) continue;
        PB_TRY(const SchemaSource target, resolver_.resolve_dynamic(source, keyword));
        PB_CHECK(add(target, out, depth + 1));
    }
    for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
        if (!s.contains(keyword)) continue;
        const Json& parts = s[keyword];
        const std::string name = keyword;
        if (!parts.is_array() || parts.empty())
            return invalid(source.path + "/" + name + ": is not an array of schemas");
        if (parts.size() > 1000) return invalid(source.path + "/" + name + ": more than 1000 schemas");
        out.cost += parts.size();
        if (name == "oneOf") {
            PB_TRY(auto branches, one_of_.branches(source));
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
        SchemaSources holds{condition}, fails{made_.negation(condition)};
        if (s.contains("then")) holds.push_back(source.beside("then", s["then"]));
        if (s.contains("else")) fails.push_back(source.beside("else", s["else"]));
        out.choices.push_back({std::move(holds), std::move(fails)});
    }
    return add_dependencies(source, out);
}

Result<> SchemaText::add_not(const SchemaSource& negated, FlatSchema& out, int depth) const {
    const auto [at, fresh] = violations_.try_emplace(negated.schema);
    SchemaSources& ways = at->second;
    if (fresh) {
        const FollowReference follow = [&](const Json& with_ref) -> const Json* {
            if (negated.dynamic) return nullptr; // a copy would not know on which way it was found
            const auto target = resolver_.resolve({&with_ref, negated.path});
            return target ? target->schema : nullptr;
        };
        for (Json& each : violations_of(*negated.schema, follow, copies_)) {
            SchemaSource way{&made_.keep(std::move(each)), negated.path};
            way.violates = true;
            ways.push_back(std::move(way));
        }
    }
    if (copies_ == 0) return invalid(negated.path + ": the schemas under 'not' and 'oneOf' are too large together");
    if (ways.empty()) {
        bool asserts = false;
        for (const Keyword& k : known_keywords()) {
            if (!negated.schema->is_object() || !negated.schema->contains(k.name)) continue;
            asserts = true;
            if (k.kind == Keyword::Kind::kAsserts || (negated.dynamic && k.name.ends_with("Ref")))
                return unsupported(negated.path + ": keyword '" + std::string(k.name) +
                                   "' is not supported under 'not'");
        }
        if (asserts) return unsupported(negated.path + ": a 'not' of this schema is not supported");
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
        if (!s[keyword].is_object()) return invalid(source.path + "/" + keyword + ": is not an object");
        for (const auto& [name, needs] : s[keyword].get_ref<const Json::object_t&>()) {
            const SchemaSource part = source.at(keyword + ("/" + name), needs);
            Json required = Json::array({name});
            if (needs.is_array())
                for (const Json& other : needs) required.push_back(other);
            else if (needs.is_string()) // draft 3
                required.push_back(needs);
            const SchemaSource present{&made_.keep(Json{{"required", std::move(required)}}), part.path};
            const SchemaSource absent{&made_.keep(Json{{"properties", Json{{name, false}}}}), part.path};
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

}  // namespace patchbay::grammar
