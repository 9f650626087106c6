#include "text/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace patchbay::text {

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

void drain_utf8(std::string& bytes, std::string& out, Rest rest) {
    std::string_view left = bytes;
    while (!left.empty()) {
        const size_t good = valid_prefix(left);
        out.append(left.substr(0, good));
        left.remove_prefix(good);
        if (left.empty()) break;
        const Utf8Step step = utf8_step(left);
        if (step.what == Utf8::kUnfinished && rest == Rest::kKeep) break;
        out += "\xEF\xBF\xBD"; // U+FFFD
        left.remove_prefix(step.bytes);
    }
    bytes.erase(0, bytes.size() - left.size());
}

}  // namespace patchbay::text
