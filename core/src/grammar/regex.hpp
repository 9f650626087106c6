// Regular expressions as rules: the syntax that PCRE, Python and ECMAScript read alike and that is regular. All other
// syntax is refused by name.
#pragma once
#include <functional>
#include <string_view>

#include "grammar/rules.hpp"

namespace patchbay::grammar {

struct RegexDialect {
    CodePoints dot, space;                                  // what . and \s stand for
    enum class Match { kWhole, kAnywhere } match;           // the whole text, or a part; ^ and $ are its ends
    std::function<ExprId(Rules&, const CodePoints&)> spell; // one character of the set
    bool either_case = false;                               // a letter stands for all of its cases
};
RegexDialect plain_regex(); // the whole text; . is all but a line feed, \s ASCII's white space

inline constexpr size_t kMaxRegexBytes = 64u << 10;
inline constexpr uint32_t kMaxRepetitions = 20'000;

Result<ExprId> parse_regex(Rules&, std::string_view pattern, const RegexDialect&, Work&);

}  // namespace patchbay::grammar
