// Numbers under the constraints of a schema. For the JSON Schema front end.
#pragma once
#include <map>
#include <string>

#include "base/result.hpp"
#include "grammar/json_text.hpp"
#include "grammar/schema_constraints.hpp"

namespace patchbay::grammar {

class SchemaNumbers {
  public:
    SchemaNumbers(Rules& rules, JsonText& text, Work& work) : rules_(rules), text_(text), work_(work) {}

    Result<ExprId> under(const Constraints&);
    Result<bool> allows(const Constraints&, const Json& listed); // by its value, however it is written

  private:
    Result<ExprId> multiples(const Json& step, const std::string& path);

    Rules& rules_;
    JsonText& text_;
    Work& work_;
    std::map<std::string, ExprId> steps_; // of multipleOf
};

}  // namespace patchbay::grammar
