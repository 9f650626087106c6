// Whether a template has a way of its own for messages without content, such as those that only call tools.
#pragma once
#include "text/chat_template/tree.hpp"

namespace patchbay::text::chat {

// Somewhere it tests a member `content` for none, or compares it with none.
bool tests_content_for_none(const Block&);

}  // namespace patchbay::text::chat
