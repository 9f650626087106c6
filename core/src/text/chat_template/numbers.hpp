// Python's int() and float() of a text. Used by the filters.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace patchbay::text::chat {

// Nothing: it is no number, or an int that is too large.
std::optional<int64_t> whole_number_in(std::string_view, int64_t base);
std::optional<double> number_in(std::string_view);

}  // namespace patchbay::text::chat
