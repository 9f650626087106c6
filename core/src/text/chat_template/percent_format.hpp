// Python's `text % values`. Used by the operator and the filter `format`.
#pragma once
#include <string>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

Value percent_format(Budget&, const std::string& format, const Value& values);

}  // namespace patchbay::text::chat
