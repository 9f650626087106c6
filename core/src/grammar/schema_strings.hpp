// Strings under the constraints of a schema. For the JSON Schema front end.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "grammar/dfa.hpp"
#include "grammar/json_text.hpp"
#include "grammar/schema_constraints.hpp"

namespace patchbay::grammar {

class SchemaStrings {
  public:
    SchemaStrings(Rules& rules, JsonText& text, Work& work) : rules_(rules), text_(text), work_(work) {}

    Result<ExprId> under(const Constraints&);
    Result<ExprId> content(const Constraints&); // without quotes; one spelling for each text
    // Whether a text that a schema lists may stand there. A `format` does not count: what is generated of it is a part
    // of what is valid.
    Result<bool> allows(const Constraints&, const Json& listed);
    // The texts in which a pattern matches, as they stand in a string.
    Result<Dfa> matching(const std::string& pattern, const std::string& path);

  private:
    Result<ExprId> parsed(const std::string& pattern, RegexDialect::Match, const std::string& path);
    Result<const Dfa*> automaton(const std::string& pattern, const std::string& path);

    Rules& rules_;
    JsonText& text_;
    Work& work_;
    std::map<std::pair<std::string, RegexDialect::Match>, ExprId> expressions_; // of patterns
    std::map<std::string, Dfa> patterns_;
};

}  // namespace patchbay::grammar
