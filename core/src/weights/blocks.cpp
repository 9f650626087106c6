#include "weights/blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "weights/convert.hpp"
#include "weights/mx_numbers.hpp"
#include "weights/raw_value.hpp"

namespace patchbay::weights {
namespace {

uint8_t byte_at(const std::byte* at, int i) { return static_cast<uint8_t>(at[i]); }

float f16_at(const std::byte* at) { return f16_to_f32(raw_value<uint16_t>(at)); }

constexpr float kNoOffset = -0.0f;  // leaves zeros their sign

// Blocks of 32: 16 bytes hold number j in their low and number j + 16 in their high four bits; `fifth` holds bit 4 of
// each, by number.
void codes_32(const std::byte* fours, uint32_t fifth, int zero, int8_t* out) {
    for (int j = 0; j < 16; ++j) {
        const int low = byte_at(fours, j) & 15, high = byte_at(fours, j) >> 4;
        out[j] = static_cast<int8_t>((low | static_cast<int>(fifth >> j & 1) << 4) - zero);
        out[j + 16] = static_cast<int8_t>((high | static_cast<int>(fifth >> (j + 16) & 1) << 4) - zero);
    }
}

// Q4_0, Q4_1, Q5_0 and Q5_1: a scale, an offset (that of the others follows from the bits), bits 4, and the other bits.
enum class Offset { kFixed, kStored };
template <Offset offset, int bits>
void unpack_32(const std::byte* block, const BlockCodes& to) {
    constexpr bool kStored = offset == Offset::kStored;
    const std::byte* at = block + (kStored ? 4 : 2);
    uint32_t fifth = 0;
    if constexpr (bits == 5) {
        fifth = raw_value<uint32_t>(at);
        at += 4;
    }
    codes_32(at, fifth, kStored ? 0 : 1 << (bits - 1), to.codes);
    to.scales[0] = f16_at(block);
    to.offsets[0] = kStored ? f16_at(block + 2) : kNoOffset;
}

struct GroupScale {
    float scale, offset;  // a number is scale · q − offset
};

// Q4_K and Q5_K: eight groups of 32. 12 bytes hold a scale and an offset of six bits for each: those of the first four
// groups whole in the low bits of bytes 0-3 and 4-7, of the others four bits in bytes 8-11 and two in the high bits of
// the first eight.
GroupScale group_scale(const std::byte* block, int group) {
    const std::byte* packed = block + 4;
    int scale, offset;
    if (group < 4) {
        scale = byte_at(packed, group) & 63;
        offset = byte_at(packed, group + 4) & 63;
    } else {
        scale = (byte_at(packed, group + 4) & 15) | (byte_at(packed, group - 4) >> 6) << 4;
        offset = byte_at(packed, group + 4) >> 4 | (byte_at(packed, group) >> 6) << 4;
    }
    return {f16_at(block) * static_cast<float>(scale), f16_at(block + 2) * static_cast<float>(offset)};
}

// 32 bytes hold two groups: one in the low, the next in the high four bits. Q5_K: bit `group` of 32 bytes before those
// is bit 4 of the group's numbers.
template <int bits>
void unpack_q45_k(const std::byte* block, const BlockCodes& to) {
    for (int group = 0; group < 8; ++group) {
        const std::byte *fifths = block + 16, *fours = fifths + (bits == 5 ? 32 : 0) + group / 2 * 32;
        for (int j = 0; j < 32; ++j) {
            const int four = byte_at(fours, j) >> (group % 2 * 4) & 15;
            const int fifth = bits == 5 ? byte_at(fifths, j) >> group & 1 : 0;
            to.codes[group * 32 + j] = static_cast<int8_t>(four | fifth << 4);
        }
        const auto [scale, offset] = group_scale(block, group);
        to.scales[group] = scale;
        to.offsets[group] = -offset;
    }
}

// Q2_K and Q3_K: two halves of 128 numbers in four rows of 32, whose low two bits lie in the same 32 bytes.
int two_bits(const std::byte* twos, int i) { return byte_at(twos, i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3; }

// What the four bits of IQ4_NL and IQ4_XS stand for.
constexpr int8_t kUneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// 16 bytes hold number j in their low and number j + 16 in their high four bits.
void codes_of_iq4(const std::byte* fours, int8_t* out) {
    for (int j = 0; j < 16; ++j) {
        out[j] = kUneven[byte_at(fours, j) & 15];
        out[j + 16] = kUneven[byte_at(fours, j) >> 4];
    }
}

void unpack_q8_0(const std::byte* block, const BlockCodes& to) {
    std::memcpy(to.codes, block + 2, 32);
    to.scales[0] = f16_at(block);
    to.offsets[0] = kNoOffset;
}

// Two halves of 128 numbers in four rows of 32. A half has 64 bytes of low four bits (rows 0 and 2 in the first 32,
// 1 and 3 in the others), 32 bytes of high two bits, and a signed scale for each 16 numbers.
void unpack_q6_k(const std::byte* block, const BlockCodes& to) {
    int8_t* out = to.codes;
    for (int half = 0; half < 2; ++half) {
        const std::byte *fours = block + half * 64, *twos = block + 128 + half * 32;
        for (int row = 0; row < 4; ++row)
            for (int j = 0; j < 32; ++j) {
                const int low = byte_at(fours, row % 2 * 32 + j) >> (row / 2 * 4) & 15;
                const int high = byte_at(twos, j) >> (row * 2) & 3;
                *out++ = static_cast<int8_t>((low | high << 4) - 32);
            }
    }
    for (int i = 0; i < 16; ++i)
        to.scales[i] = f16_at(block + 208) * static_cast<float>(static_cast<int8_t>(byte_at(block + 192, i)));
    std::fill_n(to.offsets, 16, kNoOffset);
}

// 16 bytes hold a scale in their low and an offset in their high four bits, each for a group of 16; 64 bytes of codes.
void unpack_q2_k(const std::byte* block, const BlockCodes& to) {
    const std::byte* twos = block + 16;
    for (int i = 0; i < kMaxBlock; ++i) to.codes[i] = static_cast<int8_t>(two_bits(twos, i));
    for (int group = 0; group < 16; ++group) {
        to.scales[group] = f16_at(block + 80) * static_cast<float>(byte_at(block, group) & 15);
        to.offsets[group] = -(f16_at(block + 82) * static_cast<float>(byte_at(block, group) >> 4));
    }
}

// 32 bytes of high bits, one for each row of either half; 64 bytes of low two; scales of six bits for groups of 16, in
// 8 bytes of low four (of groups i and i + 8) and 4 of high two (of groups i, i + 4, i + 8 and i + 12).
void unpack_q3_k(const std::byte* block, const BlockCodes& to) {
    const std::byte *thirds = block, *twos = block + 32, *fours = block + 96, *high = block + 104;
    for (int i = 0; i < kMaxBlock; ++i) {
        const int third = byte_at(thirds, i % 32) >> (i / 32) & 1;
        to.codes[i] = static_cast<int8_t>((two_bits(twos, i) | third << 2) - 4);
    }
    for (int group = 0; group < 16; ++group) {
        const int low = byte_at(fours, group % 8) >> (group / 8 * 4) & 15;
        const int scale = low | (byte_at(high, group % 4) >> (group / 4 * 2) & 3) << 4;
        to.scales[group] = f16_at(block + 108) * static_cast<float>(scale - 32);
    }
    std::fill_n(to.offsets, 16, kNoOffset);
}

void unpack_iq4_nl(const std::byte* block, const BlockCodes& to) {
    codes_of_iq4(block + 2, to.codes);
    to.scales[0] = f16_at(block);
    to.offsets[0] = kNoOffset;
}

void unpack_mxfp4(const std::byte* block, const BlockCodes& to) {
    for (int j = 0; j < 16; ++j) {
        to.codes[j] = kTwiceE2m1[byte_at(block + 1, j) & 15];
        to.codes[j + 16] = kTwiceE2m1[byte_at(block + 1, j) >> 4];
    }
    to.scales[0] = half_of_e8m0(block[0]);
    to.offsets[0] = kNoOffset;
}

// Scales of six bits for groups of 32: the high two of all in 16 bits, the low four in 4 bytes.
void unpack_iq4_xs(const std::byte* block, const BlockCodes& to) {
    for (int group = 0; group < 8; ++group) {
        codes_of_iq4(block + 8 + group * 16, to.codes + group * 32);
        const int low = byte_at(block + 4, group / 2) >> (group % 2 * 4) & 15;
        const int high = byte_at(block + 2, group / 4) >> (group % 4 * 2) & 3;
        to.scales[group] = f16_at(block) * static_cast<float>((low | high << 4) - 32);
        to.offsets[group] = kNoOffset;
    }
}

constexpr auto kNone = CodeForm::Offsets::kNone, kSome = CodeForm::Offsets::kSome;
constexpr BlockKind kKinds[] = {
    {Encoding::kQ2_K, unpack_q2_k, {PB_I4, 16, kSome}},
    {Encoding::kQ3_K, unpack_q3_k, {PB_I4, 16, kNone}},
    {Encoding::kQ4_0, unpack_32<Offset::kFixed, 4>, {PB_I4, 32, kNone}},
    {Encoding::kQ4_1, unpack_32<Offset::kStored, 4>, {PB_I4, 32, kSome}, 8},
    {Encoding::kQ4_K, unpack_q45_k<4>, {PB_I4, 32, kSome}, 8},
    {Encoding::kQ5_0, unpack_32<Offset::kFixed, 5>, {PB_I8, 32, kNone}},
    {Encoding::kQ5_1, unpack_32<Offset::kStored, 5>, {PB_I8, 32, kSome}},
    {Encoding::kQ5_K, unpack_q45_k<5>, {PB_I8, 32, kSome}},
    {Encoding::kQ6_K, unpack_q6_k, {PB_I8, 16, kNone}},
    {Encoding::kQ8_0, unpack_q8_0, {PB_I8, 32, kNone}},
    {Encoding::kIQ4_NL, unpack_iq4_nl, {PB_I8, 32, kNone}},
    {Encoding::kIQ4_XS, unpack_iq4_xs, {PB_I8, 32, kNone}},
    {Encoding::kMXFP4, unpack_mxfp4, {PB_I8, 32, kNone}},
};

}  // namespace

const BlockKind* block_kind(Encoding encoding) {
    const auto at = std::ranges::find(kKinds, encoding, &BlockKind::encoding);
    return at == std::end(kKinds) ? nullptr : at;
}

}  // namespace patchbay::weights
