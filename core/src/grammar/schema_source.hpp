// A schema and where it lies: what it is about, and what holds around it. For the JSON Schema front end.
#pragma once
#include <string>
#include <vector>

#include "grammar/json_text.hpp"
#include "grammar/schema_references.hpp"

namespace patchbay::grammar {

// A schema with unevaluatedProperties or unevaluatedItems, which others lie in that are about the same value.
struct UnevaluatedScope {
    const Json* schema;
    const UnevaluatedScope* outer;
    static bool contains(const UnevaluatedScope* around, const UnevaluatedScope* inner) {
        for (; inner; inner = inner->outer)
            if (inner == around) return true;
        return false;
    }
};

struct SchemaSource {
    const Json* schema;
    std::string path; // "#/properties/name"; a long one is cut
    bool entered = false;  // scopes are those within it: it is what is left of a schema
    bool violates = false; // it says what a `not` or `oneOf` forbids: it evaluates nothing for the schemas around it
    const UnevaluatedScope* scope = nullptr;
    const DynamicAnchors* dynamic = nullptr; // of the resources on the way to it, the outermost first; null: not needed

    // A part that is about another value, and one that is about the same.
    SchemaSource at(const std::string& keyword, const Json& part) const {
        return {&part, longer(keyword), false, false, nullptr, dynamic};
    }
    SchemaSource beside(const std::string& keyword, const Json& part) const {
        return {&part, longer(keyword), false, violates, scope, dynamic};
    }
    // Another one, made without knowing where this one lies, in its place.
    SchemaSource placed(const SchemaSource& other) const {
        return {other.schema, other.path, false, violates || other.violates, scope, dynamic};
    }
    bool lies_in(const UnevaluatedScope* around) const { return UnevaluatedScope::contains(around, scope); }

  private:
    std::string longer(const std::string& keyword) const {
        return path.size() < 300 ? path + "/" + keyword.substr(0, 200) : path;
    }
};
using SchemaSources = std::vector<SchemaSource>;

}  // namespace patchbay::grammar
