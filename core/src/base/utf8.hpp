// UTF-8, one character at a time. Ill-formed bytes are taken by maximal subparts (The Unicode Standard, section 3.9):
// what is replaced by U+FFFD does not depend on how the bytes were cut into chunks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace patchbay {

enum class Utf8 { kCharacter, kInvalid, kUnfinished /* more bytes could complete it */ };

struct Utf8Step {
    Utf8 what;
    size_t bytes; // at least 1
};

Utf8Step utf8_step(std::string_view bytes);  // bytes: not empty
size_t valid_prefix(std::string_view bytes); // how many bytes from the front are whole, well-formed characters
char32_t code_point(std::string_view character); // that these bytes are; they are whole and well-formed
constexpr bool is_character(int64_t code) { return code >= 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF); }
inline bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
size_t count_characters(std::string_view utf8);

}  // namespace patchbay
