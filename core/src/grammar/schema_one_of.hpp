// The branches of oneOf, of which exactly one must hold. For the JSON Schema front end.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "grammar/made_schemas.hpp"
#include "grammar/schema_resolver.hpp"

namespace patchbay::grammar {

class OneOf {
  public:
    OneOf(const SchemaResolver& resolver, const MadeSchemas& made) : resolver_(resolver), made_(made) {}

    // What is generated for one branch violates those that it may fit besides.
    Result<std::vector<SchemaSources>> branches(const SchemaSource&) const;

  private:
    bool disjoint(const Json& a, const Json& b, int depth) const;
    bool pays(uint64_t) const; // false: the budget of comparisons is used up

    const SchemaResolver& resolver_;
    const MadeSchemas& made_;
    mutable std::map<const Json*, std::vector<SchemaSources>> branches_; // by schema
    mutable uint64_t comparisons_ = 1'000'000; // left; at 0 branches no longer count as exclusive
};

}  // namespace patchbay::grammar
