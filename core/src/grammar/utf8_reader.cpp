#include "grammar/utf8_reader.hpp"

#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "grammar/code_points.hpp"

namespace patchbay::grammar {

Result<Utf8Reader> Utf8Reader::of(std::string_view text, size_t max_bytes, const char* what) {
    if (text.size() > max_bytes)
        return invalid(std::string(what) + " of " + std::to_string(text.size()) + " bytes, expected at most " +
                       std::to_string(max_bytes));
    if (const size_t good = valid_prefix(text); good != text.size())
        return invalid(std::string(what) + ": byte " + std::to_string(good) + " is not UTF-8");
    Utf8Reader out;
    for (size_t i = 0; i < text.size();) {
        const std::string_view character = text.substr(i, utf8_step(text.substr(i)).bytes);
        out.text_ += code_point(character);
        i += character.size();
    }
    return out;
}

std::string Utf8Reader::shown(size_t from) const {
    std::string out;
    for (size_t i = from; i < at_ && i < text_.size() && i < from + 40; ++i) out += utf8(text_[i]);
    return out;
}

std::string Utf8Reader::where() const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
        column = text_[i] == '\n' ? 1 : column + 1;
        line += text_[i] == '\n';
    }
    return "at line " + std::to_string(line) + ", column " + std::to_string(column);
}

std::optional<uint32_t> Utf8Reader::hex(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
        const uint32_t digit = hex_digit(peek());
        if (digit == 16) return std::nullopt;
        value = value << 4 | digit;
        ++at_;
    }
    return value;
}

std::optional<uint32_t> Utf8Reader::number(uint32_t max_value) {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    uint64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
        value = value * 10 + (next() - '0');
        if (value > max_value) return std::nullopt;
    }
    return static_cast<uint32_t>(value);
}

}  // namespace patchbay::grammar
