// Schemas that are made of others, kept for as long as what refers to them. For the JSON Schema front end.
#pragma once
#include <deque>
#include <map>
#include <utility>

#include "grammar/schema_source.hpp"

namespace patchbay::grammar {

class MadeSchemas {
  public:
    const Json& keep(Json made) const { return made_.emplace_back(std::move(made)); } // as long as this
    SchemaSource negation(const SchemaSource& source) const { // {"not": schema}, the same one each time
        const auto [at, fresh] = negations_.try_emplace(source.schema, nullptr);
        if (fresh) at->second = &keep(Json{{"not", *source.schema}});
        SchemaSource out = source;
        out.schema = at->second;
        out.violates = true;
        out.entered = false;
        return out;
    }

  private:
    mutable std::deque<Json> made_;
    mutable std::map<const Json*, const Json*> negations_; // {"not": schema}, by schema
};

}  // namespace patchbay::grammar
