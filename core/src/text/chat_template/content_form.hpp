// Whether a template reads the contents of messages as texts or as lists of parts, by what it does with them.
#pragma once
#include "text/chat_template/tree.hpp"

namespace patchbay::text::chat {

// It loops over a message's content, or selects parts of it, and never tests whether it is a string: one that does
// takes both, and reads texts.
bool takes_parts(const Block&);

// x of `x.content` and `x['content']`; null: it is neither.
const Expression* holder_of_content(const Expression&);

}  // namespace patchbay::text::chat
