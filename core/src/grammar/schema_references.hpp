// Names of places in a schema: $id (id in draft 4), $anchor, $dynamicAnchor. For the JSON Schema front end.
#pragma once
#include <map>
#include <string>

#include "base/result.hpp"
#include "grammar/json_text.hpp"

namespace patchbay::grammar {

// Drops what the schema's draft ignores: keywords that it does not have, and in drafts 4 to 7 those beside a $ref.
// Rewrites each $ref, $dynamicRef and $recursiveRef as '#/…' from the root, so that a part of the schema can be read
// wherever it is copied to; as a $ref where it has one possible target. What leads out of the schema stays as it is.
// Fails where the names and the places that they stand for are too long together.
Result<> localise_references(Json& root);

// Schemas by the name of a $dynamicAnchor; "": of a $recursiveAnchor. `resource`: with an $id, around it.
struct DynamicAnchor {
    const Json* schema;
    const Json* resource;
    auto operator<=>(const DynamicAnchor&) const = default;
};
using DynamicAnchors = std::map<std::string, DynamicAnchor>;
// The anchors of each resource of a schema that localise_references() has rewritten; the root is one. Empty: no
// reference needs them.
std::map<const Json*, DynamicAnchors> dynamic_anchors_of(const Json& root);

// Calls visit(part, pointer from the schema) for each schema directly within another.
template <class Schema, class Visit>
void each_subschema(Schema& schema, const Visit& visit) {
    const auto escaped = [](const std::string& name) {
        std::string out;
        for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
        return out;
    };
    for (auto member : schema.items()) {
        const std::string& key = member.key();
        auto& part = member.value();
        const std::string_view name = key;
        const auto is = [&](std::initializer_list<const char*> names) {
            for (const char* n : names)
                if (name == n) return true;
            return false;
        };
        const bool named = is({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas",
                               "dependencies"});
        const bool listed = is({"allOf", "anyOf", "oneOf", "prefixItems", "items"});
        const bool single = is({"items", "additionalItems", "additionalProperties", "not", "if", "then", "else",
                                "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"});
        if (named && part.is_object()) {
            for (auto inner : part.items()) visit(inner.value(), "/" + key + "/" + escaped(inner.key()));
        } else if (listed && part.is_array()) {
            for (size_t i = 0; i < part.size(); ++i) visit(part[i], "/" + key + "/" + std::to_string(i));
        } else if (single) {
            visit(part, "/" + key);
        }
    }
}

}  // namespace patchbay::grammar
