// Templates as trees: Jinja's statements and expressions, as far as chat templates use them.
#pragma once
#include <string_view>

#include "text/chat_template/tree.hpp"

namespace patchbay::text::chat {

Block parse_template(std::string_view source); // throws TemplateError

}  // namespace patchbay::text::chat
