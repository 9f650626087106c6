// Numbers as texts.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace patchbay {

// The number that the whole text is; none where it is no number, or one that T does not hold.
template <class T>
std::optional<T> parse_number(std::string_view text) {
    T out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return out;
}

// The value of a hexadecimal digit; 16: it is none.
constexpr uint32_t hex_digit(uint32_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

// The shortest text that reads back the same.
template <class T>
std::string number_text(T value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace patchbay
