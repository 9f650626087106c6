// A parsed template. Made by the parser, walked by the evaluation; constant after that, and so shared by threads.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/chat_template/value.hpp"

namespace patchbay::text::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Expression {
    enum class Kind {
        kLiteral,     // value
        kName,        // name
        kList,        // items
        kTuple,       // items
        kDict,        // items: key, value, key, value, …
        kUnary,       // name: "-", "+" or "not"; items: one
        kBinary,      // name: "+", "-", "*", "/", "//", "%", "**", "~", "and", "or"; items: two
        kCompare,     // ops beside items[1…]: "==", …, "in", "not in"
        kConditional, // items: condition, then, else (or null)
        kAttribute,   // items: of what; name
        kSubscript,   // items: of what, key
        kSlice,       // items: of what, start, stop, step (or null)
        kCall,        // items: callee, arguments; named
        kFilter,      // name; items: of what, arguments; named
        kTest,        // name; items: of what, arguments
    };
    Kind kind;
    uint32_t line;
    std::string name{};
    Value value{};
    std::vector<ExpressionPtr> items{};
    std::vector<std::pair<std::string, ExpressionPtr>> named{}; // "*" and "**": unpacked
    std::vector<std::string> ops{};
    uint32_t depth = 1; // of the tree below it
};

struct Target { // of an assignment: names, or a field of a namespace
    std::vector<std::string> names;
    std::string field;
    bool unpacks = false; // a list of names, though it may be one
};

struct Statement;
using Block = std::vector<std::unique_ptr<const Statement>>;

struct Parameter {
    std::string name;
    ExpressionPtr default_value; // null: none
};

struct Statement {
    enum class Kind {
        kText,   // text
        kPrint,  // value
        kIf,     // value; body; otherwise (where an elif is a block of one kIf)
        kFor,    // target, value, condition (or null); body; otherwise
        kSet,    // target; value
        kCapture, // {% set x %}…{% endset %}: target, body; value: the filters over kCaptured, or null
        kMacro,  // text: its name; parameters; body
        kCall,   // {% call(…) f() %}: value; parameters; body
        kFilter, // value: the filters over kCaptured; body
        kWith,   // targets and values by parameters; body
        kGroup,  // body, in a scope of its own
        kBreak,
        kContinue,
    };
    static constexpr const char* kCaptured = "\x01"; // the name that filters over a body are applied to
    Kind kind;
    uint32_t line;
    std::string text{};
    ExpressionPtr value{}, condition{};
    Target target{};
    std::vector<Parameter> parameters{};
    Block body{}, otherwise{};
};

}  // namespace patchbay::text::chat
