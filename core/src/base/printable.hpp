// Untrusted bytes (of files, plugins, peers) as messages may show them: no control characters that a terminal or a log
// would obey, no bytes that are not UTF-8, of a readable length. For whatever makes messages or prints them.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay {

// Control characters, line and paragraph separators, characters that turn the direction of writing, and bytes that are
// no UTF-8 become \n, \t, \r, \xNN or \u{NNNN}. What is longer than max_bytes is cut, at a whole character, with "…".
std::string printable(std::string_view text, size_t max_bytes = 100);

// Of a whole message, as the last net before a log or a terminal: escaped likewise, and cut in its middle, so that its
// place and its advice stay.
std::string printable_message(std::string_view message);
// The same of each of its lines, which are kept apart: for what prints errors of several lines.
std::string printable_lines(std::string_view messages);

// A failure whose text may hold untrusted bytes, as one line. For where errors about files of others come together.
template <class T>
Result<T> in_one_line(Result<T> result) {
    if (result) return result;
    return fail(result.code(), printable_message(result.error()));
}

}  // namespace patchbay
