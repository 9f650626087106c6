// Expressions of a template, with Jinja's precedence. Used by the parser of statements.
#pragma once
#include "text/chat_template/token_reader.hpp"
#include "text/chat_template/tree.hpp"

namespace patchbay::text::chat {

ExpressionPtr parse_expression(TokenReader&);    // a conditional
ExpressionPtr parse_without_if(TokenReader&);    // of `for x in … if …`
ExpressionPtr parse_tuple(TokenReader&);         // `a` or `a, b`
ExpressionPtr parse_filters(TokenReader&, ExpressionPtr of);      // what follows it: | f | g(…)
ExpressionPtr parse_first_filter(TokenReader&, ExpressionPtr of); // f | g(…)
ExpressionPtr parse_call_statement(TokenReader&); // the call of {% call … %}

}  // namespace patchbay::text::chat
