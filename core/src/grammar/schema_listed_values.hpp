// The values of enum and const under the other keywords beside them. For the JSON Schema front end.
#pragma once
#include "base/result.hpp"
#include "grammar/json_text.hpp"
#include "grammar/schema_constraints.hpp"
#include "grammar/schema_numbers.hpp"
#include "grammar/schema_strings.hpp"
#include "grammar/schema_text.hpp"

namespace patchbay::grammar {

struct ListedValues {
    Rules& rules;
    JsonText& text;
    Work& work;
    const SchemaText& schema;
    SchemaNumbers& numbers;
    SchemaStrings& strings;
};

// Of constraints that list values: those that the schemas allow.
Result<ExprId> listed_values_of(const ListedValues&, const SchemaSources&, const Constraints&);

}  // namespace patchbay::grammar
