// Python's `text.format(values)` with fields such as {name.key[0]!r:>8.3f}. Used by the methods of strings.
#pragma once
#include <string>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

Value str_format(Budget&, const std::string& format, const Arguments& given);
Value str_format_map(Budget&, const std::string& format, const Arguments& given); // one dict

}  // namespace patchbay::text::chat
