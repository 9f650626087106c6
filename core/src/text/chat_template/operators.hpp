// Operators of a template's expressions, as Python has them.
#pragma once
#include <string>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

Value apply_sign(const std::string& op, const Value&); // "-", "+"
// "+", "-", "*", "/", "//", "%", "**", "~"
Value apply_binary(Budget&, const std::string& op, const Value& left, const Value& right);
// "==", "!=", "<", "<=", ">", ">=", "in", "not in"
bool apply_comparison(Budget&, const std::string& op, const Value& left, const Value& right);

}  // namespace patchbay::text::chat
