#include "base/flat_string.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace patchbay {

std::string flat_string(std::string text) {
    static constexpr std::array<std::string_view, 5> kOtherTypes{"true", "false", "null", "[]", "{}"};
    double number = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    const bool reads_otherwise = text.starts_with('"') || (end == last && error != std::errc::invalid_argument) ||
                                 std::find(kOtherTypes.begin(), kOtherTypes.end(), text) != kOtherTypes.end();
    return reads_otherwise ? '"' + text + '"' : text;
}

}  // namespace patchbay
