// Texts with places for values, as Python fills them. Used by operators, filters and methods.
#pragma once
#include <string>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

// `text % values`.
Value percent_format(Budget&, const std::string& format, const Value& values);

// `text.format(values)`, with fields such as {name.key[0]!r:>8.3f}.
Value str_format(Budget&, const std::string& format, const Arguments& given);
Value str_format_map(Budget&, const std::string& format, const Arguments& given); // one dict

// `format(value, spec)`: "{:>8.3f}" has the spec ">8.3f".
std::string formatted(Budget&, const Value&, const std::string& spec);

}  // namespace patchbay::text::chat
