// A template's text as tokens: plain text, and what stands between {{ }} and {% %}, with Jinja's white space control as
// chat templates are rendered (trim_blocks, lstrip_blocks). Used by the parser.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::text::chat {

enum class TokenKind {
    kText,       // between tags
    kPrintBegin, // {{
    kPrintEnd,
    kBlockBegin, // {%
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd, // of the template
};

struct Token {
    TokenKind kind;
    std::string text; // of a string: what it stands for
    uint32_t line;
};

std::vector<Token> tokens_of(std::string_view source); // throws TemplateError

}  // namespace patchbay::text::chat
