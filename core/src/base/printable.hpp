// Untrusted bytes (of files, plugins, peers) as messages may show them: no control characters that a terminal or a log
// would execute, valid UTF-8, of readable length. For code that makes or prints messages.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay {

// Control characters, line and paragraph separators, characters that change the writing direction, and bytes that are
// not UTF-8 become \n, \t, \r, \xNN or \u{NNNN}. Text beyond max_bytes is cut, at a whole character, with "…".
std::string printable(std::string_view text, size_t max_bytes = 100);

// For a whole message, just before a log or a terminal: escapes likewise, and cuts in the middle, so that the
// place at its start and the advice at its end remain.
std::string printable_message(std::string_view message);
// The same for each line of an error of several lines.
std::string printable_lines(std::string_view messages);

// A failure whose text may hold untrusted bytes, as one line. For errors about files of others.
template <class T>
Result<T> in_one_line(Result<T> result) {
    if (result) return result;
    return fail(result.code(), printable_message(result.error()));
}

}  // namespace patchbay
