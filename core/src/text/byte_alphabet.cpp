#include "text/byte_alphabet.hpp"

#include <array>
#include <cstdint>

namespace patchbay::text {
namespace {

constexpr bool printable(uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

// Printable bytes stand for themselves; the other 68 take the characters from U+0100 on, in order.
constexpr std::array<uint16_t, 256> kCharacterOf = [] {
    std::array<uint16_t, 256> out{};
    uint16_t next = 0x100;
    for (uint32_t b = 0; b < 256; ++b) out[b] = printable(b) ? static_cast<uint16_t>(b) : next++;
    return out;
}();

constexpr uint16_t kNone = 0xFFFF;
constexpr std::array<uint16_t, 0x144> kByteOf = [] {
    std::array<uint16_t, 0x144> out{};
    for (auto& b : out) b = kNone;
    for (uint16_t b = 0; b < 256; ++b) out[kCharacterOf[b]] = b;
    return out;
}();

}  // namespace

std::string spell_byte(unsigned char byte) {
    const uint16_t c = kCharacterOf[byte];
    if (c < 0x80) return {static_cast<char>(c)};
    return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

std::optional<std::string> spelled_bytes(std::string_view spelled) {
    std::string out;
    for (size_t i = 0; i < spelled.size(); ++i) {
        uint32_t c = static_cast<unsigned char>(spelled[i]);
        if (c >= 0x80) { // the alphabet ends at U+0143: two bytes at most
            if (c > 0xDF || i + 1 == spelled.size()) return std::nullopt;
            c = (c & 0x1F) << 6 | (static_cast<unsigned char>(spelled[++i]) & 0x3F);
        }
        if (c >= kByteOf.size() || kByteOf[c] == kNone) return std::nullopt;
        out += static_cast<char>(kByteOf[c]);
    }
    return out;
}

}  // namespace patchbay::text
