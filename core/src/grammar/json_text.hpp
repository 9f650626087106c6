// How JSON is spelled: the parts of values as rules, for the JSON Schema front end.
// Spelling: under a pattern, a length with a pattern, a format or a list of names, each character has one
// spelling, itself, escaped only where JSON requires it; elsewhere every escape of JSON is allowed.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "grammar/regex.hpp"
#include "grammar/rules.hpp"

namespace patchbay::grammar {

using Json = nlohmann::ordered_json; // members in the order of the text

// kSome: after '{', '[' and ',', and before '}' and ']': nothing, one space, or a line feed followed by at most 40
// spaces or tabs. After ':' nothing or one space.
enum class Whitespace { kNone, kSome };

class JsonText {
  public:
    JsonText(Rules&, Whitespace);

    ExprId value();                   // any
    ExprId object_of(ExprId members); // in braces; members: at least one
    ExprId array_of(ExprId items);    // in brackets; items: at least one
    ExprId member(ExprId name, ExprId value);
    ExprId separator();                         // between members or items
    ExprId string(uint32_t min, uint32_t max);  // any string of min to max characters
    ExprId quoted(ExprId content);              // with one spelling for each character
    ExprId content(uint32_t min, uint32_t max); // likewise, of min to max characters
    ExprId number();
    ExprId integer();
    ExprId boolean();
    ExprId literal(const Json&);
    ExprId regex(const std::string& of_ours); // for an expression of this program, which is valid
    RegexDialect pattern_dialect() const;     // of JSON Schema's `pattern`: ECMAScript's
    RegexDialect format_dialect() const;      // the same, of the whole text

    static std::string spelled(const Json&); // of a scalar

  private:
    ExprId space();

    Rules& rules_;
    Whitespace whitespace_;
    std::optional<RuleId> value_, string_, space_;
};

}  // namespace patchbay::grammar
