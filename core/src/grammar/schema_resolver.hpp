// Follows the references of a schema, and knows what holds where they lead. For the JSON Schema front end.
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "base/result.hpp"
#include "grammar/schema_references.hpp"
#include "grammar/schema_source.hpp"

namespace patchbay::grammar {

inline constexpr int kMaxReferences = 64; // and allOfs inside each other

class SchemaResolver {
  public:
    explicit SchemaResolver(const Json& root) : root_(root), resources_(dynamic_anchors_of(root)) {}

    SchemaSource root() const;
    Result<SchemaSource> entered(SchemaSource) const; // with the scopes that its schema opens
    Result<SchemaSource> resolve(const SchemaSource& with_ref) const;
    Result<SchemaSource> resolve_dynamic(const SchemaSource&, const char* keyword) const;
    const Json& followed(const Json&) const; // follows $ref to its end

  private:
    struct Target {
        SchemaSource source;
        const Json* resource; // around it
    };
    Result<Target> look_up(const SchemaSource& with_ref, const char* keyword) const;
    Result<const DynamicAnchors*> within(const DynamicAnchors*, const SchemaSource&, const Json* resource) const;

    const Json& root_;
    std::map<const Json*, DynamicAnchors> resources_; // empty: no reference needs them
    mutable std::set<DynamicAnchors> dynamic_scopes_;
    mutable size_t anchors_left_ = 200'000; // that may be in all of them
    mutable std::map<std::pair<const Json*, const UnevaluatedScope*>, UnevaluatedScope> scopes_;
    mutable std::map<const Json*, Target> resolved_; // by the schema that contains the $ref
};

}  // namespace patchbay::grammar
