// Classes of characters as Oniguruma writes them, "[\p{L}&&[^\p{Han}]]": the set is computed by ICU and written as
// plain ranges, because PCRE2 has neither intersections nor nested classes. For core/src/text/regex.cpp.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::text {

// Where the class that opens at `open` closes, if it has a class, a POSIX class or an intersection inside; no value for
// any other class, which PCRE2 reads as it is.
std::optional<size_t> end_of_nested_class(std::string_view pattern, size_t open);

// text: "[…]". Returns the class as ranges of code points. Errors name the part that cannot be read.
Result<std::string> class_as_ranges(std::string_view text);

// The set of a POSIX class ("alpha") as ICU writes it; empty: there is none of that name.
std::string_view posix_class(std::string_view name);

}  // namespace patchbay::text
