// Schemas that are made of others, kept for as long as what refers to them. For the JSON Schema front end.
#pragma once
#include <deque>
#include <map>

#include "grammar/schema_source.hpp"

namespace patchbay::grammar {

class MadeSchemas {
  public:
    const Json& keep(Json made) const; // as long as this
    SchemaSource negation(const SchemaSource&) const; // {"not": schema}, the same one each time

  private:
    mutable std::deque<Json> made_;
    mutable std::map<const Json*, const Json*> negations_; // {"not": schema}, by schema
};

}  // namespace patchbay::grammar
