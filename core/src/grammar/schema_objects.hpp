// Objects under all schemas that apply to them. For the JSON Schema front end.
#pragma once
#include <functional>

#include "base/result.hpp"
#include "grammar/json_text.hpp"
#include "grammar/schema_constraints.hpp"
#include "grammar/schema_members.hpp"

namespace patchbay::grammar {

struct ObjectTranslation {
    Rules& rules;
    JsonText& text;
    Work& work;
    NameAutomata names;
    std::function<Result<ExprId>(const SchemaSources&)> value;
};

Result<ExprId> object_of(const ObjectTranslation&, const SchemaSources&, const Constraints&);

}  // namespace patchbay::grammar
