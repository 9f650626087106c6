// The schemas that apply to one value: references followed, allOf joined, alternatives collected, every keyword known.
// For the JSON Schema front end.
#pragma once
#include <cstddef>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "grammar/made_schemas.hpp"
#include "grammar/schema_keywords.hpp"
#include "grammar/schema_one_of.hpp"
#include "grammar/schema_resolver.hpp"

namespace patchbay::grammar {

struct FlatSchema {
    SchemaSources all;                  // apply together; each is an object with keywords that constrain values
    std::vector<std::vector<SchemaSources>> choices; // of each, all of one branch must apply
    bool impossible = false;            // one of them is the schema false
    size_t seen = 0, cost = 0;          // number of schemas; with their keywords and branches
};

class SchemaText { // a whole schema; outlives everything made from it
  public:
    explicit SchemaText(const Json& root);
    SchemaText(const SchemaText&) = delete;
    SchemaText& operator=(const SchemaText&) = delete;

    Result<FlatSchema> flat(const SchemaSources&) const;
    SchemaSource root() const { return resolver_.root(); }
    Draft draft() const { return draft_; }
    Result<SchemaSource> resolve(const SchemaSource& with_ref) const { return resolver_.resolve(with_ref); }
    SchemaSource negation(const SchemaSource& s) const { return made_.negation(s); }

  private:
    Result<> add(const SchemaSource&, FlatSchema&, int depth) const;
    Result<> add_parts(const SchemaSource&, FlatSchema&, int depth) const;
    Result<> add_not(const SchemaSource& negated, FlatSchema&, int depth) const;
    Result<> add_dependencies(const SchemaSource&, FlatSchema&) const;

    const Draft draft_;
    SchemaResolver resolver_;
    MadeSchemas made_;
    OneOf one_of_{resolver_, made_};
    mutable std::map<const Json*, SchemaSources> violations_;                             // by schema
    mutable std::map<const Json*, std::vector<std::vector<SchemaSources>>> dependencies_; // by schema
    mutable size_t copies_ = 8u << 20; // bytes that may be copied
};

}  // namespace patchbay::grammar
