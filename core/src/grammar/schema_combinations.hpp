// The ways to satisfy a schema with alternatives. For the JSON Schema front end.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "grammar/dfa.hpp"
#include "grammar/schema_text.hpp"

namespace patchbay::grammar {

class Combinations {
  public:
    // One branch of each choice, with all that holds besides. They refer to this.
    Result<std::vector<SchemaSources>> of(const FlatSchema&, const std::string& path, Work&);

  private:
    const Json* without_applicators(const Json& schema); // its own keywords; null: there are none

    std::map<const Json*, Json> plain_; // schemas without what is followed elsewhere
};

}  // namespace patchbay::grammar
