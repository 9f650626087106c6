#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace patchbay {

Utf8Step utf8_step(std::string_view bytes) {
    const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char lead = at(0);
    if (lead < 0x80) return {Utf8::kCharacter, 1};
    size_t length = 0;
    unsigned char low = 0x80, high = 0xBF; // of the second byte: excludes overlong forms, surrogates, past U+10FFFF
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else {
        return {Utf8::kInvalid, 1};
    }
    for (size_t i = 1; i < length; ++i) {
        if (i == bytes.size()) return {Utf8::kUnfinished, i};
        if (at(i) < low || at(i) > high) return {Utf8::kInvalid, i};
        low = 0x80;
        high = 0xBF;
    }
    return {Utf8::kCharacter, length};
}

size_t valid_prefix(std::string_view bytes) {
    size_t i = 0;
    while (i < bytes.size()) {
        if (uint64_t eight; bytes.size() - i >= 8) {
            std::memcpy(&eight, bytes.data() + i, 8);
            if ((eight & 0x8080808080808080u) == 0) {
                i += 8;
                continue;
            }
        }
        const Utf8Step step = utf8_step(bytes.substr(i));
        if (step.what != Utf8::kCharacter) return i;
        i += step.bytes;
    }
    return i;
}

char32_t code_point(std::string_view character) {
    const auto lead = static_cast<unsigned char>(character[0]);
    if (lead < 0x80) return lead;
    char32_t code = lead & (0x7Fu >> std::min<size_t>(character.size(), 4));
    for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
    return code;
}

size_t count_characters(std::string_view utf8) {
    return utf8.size() - static_cast<size_t>(std::ranges::count_if(utf8, continues_character));
}

}  // namespace patchbay
