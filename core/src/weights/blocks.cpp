#include "weights/blocks.hpp"

#include <cstdint>
#include <cstring>

#include "weights/convert.hpp"

namespace patchbay::weights {
namespace {

uint8_t byte_at(const std::byte* at, int i) { return static_cast<uint8_t>(at[i]); }

float f16_at(const std::byte* at) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return f16_to_f32(bits);
}

uint32_t u32_at(const std::byte* at) {
    uint32_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return bits;
}

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

void decode_32(const std::byte* fours, uint32_t fifth, float scale, int zero, float offset, float* out) {
    int8_t codes[32];
    codes_32(fours, fifth, zero, codes);
    for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(codes[j]) * scale + offset;
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

// 32 bytes hold two groups: one in the low, the next in the high four bits.
void codes_of_q4_k(const std::byte* block, int group, int zero, int8_t* out) {
    const std::byte* fours = block + 16 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int j = 0; j < 32; ++j) out[j] = static_cast<int8_t>((byte_at(fours, j) >> shift & 15) - zero);
}

// As Q4_K; bit `group` of 32 more bytes is bit 4 of the group's numbers.
void codes_of_q5_k(const std::byte* block, int group, int8_t* out) {
    const std::byte *fifths = block + 16, *fours = block + 48 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int j = 0; j < 32; ++j)
        out[j] = static_cast<int8_t>((byte_at(fours, j) >> shift & 15) | (byte_at(fifths, j) >> group & 1) << 4);
}

}  // namespace

void decode_q4_0(const std::byte* block, float* out) { decode_32(block + 2, 0, f16_at(block), 8, kNoOffset, out); }

void decode_q4_1(const std::byte* block, float* out) {
    decode_32(block + 4, 0, f16_at(block), 0, f16_at(block + 2), out);
}

void decode_q5_0(const std::byte* block, float* out) {
    decode_32(block + 6, u32_at(block + 2), f16_at(block), 16, kNoOffset, out);
}

void decode_q5_1(const std::byte* block, float* out) {
    decode_32(block + 8, u32_at(block + 4), f16_at(block), 0, f16_at(block + 2), out);
}

void decode_q8_0(const std::byte* block, float* out) {
    const float scale = f16_at(block);
    for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(static_cast<int8_t>(byte_at(block + 2, j))) * scale;
}

void decode_q4_k(const std::byte* block, float* out) {
    for (int group = 0; group < 8; ++group) {
        const auto [scale, offset] = group_scale(block, group);
        int8_t codes[32];
        codes_of_q4_k(block, group, 0, codes);
        for (int j = 0; j < 32; ++j) out[group * 32 + j] = static_cast<float>(codes[j]) * scale - offset;
    }
}

void decode_q5_k(const std::byte* block, float* out) {
    for (int group = 0; group < 8; ++group) {
        const auto [scale, offset] = group_scale(block, group);
        int8_t codes[32];
        codes_of_q5_k(block, group, codes);
        for (int j = 0; j < 32; ++j) out[group * 32 + j] = static_cast<float>(codes[j]) * scale - offset;
    }
}

void decode_q6_k(const std::byte* block, float* out) {
    int8_t codes[256];
    float scales[16];
    unpack_q6_k(block, {codes, scales, nullptr});
    for (int i = 0; i < 256; ++i) out[i] = scales[i / 16] * static_cast<float>(codes[i]);
}

void unpack_q4_0(const std::byte* block, const BlockCodes& to) {
    codes_32(block + 2, 0, 8, to.codes);
    to.scales[0] = f16_at(block);
    to.offsets[0] = 0;
}

void unpack_q4_1(const std::byte* block, const BlockCodes& to) { // 0 … 15 becomes −8 … 7, which fits four bits
    codes_32(block + 4, 0, 8, to.codes);
    to.scales[0] = f16_at(block);
    to.offsets[0] = f16_at(block + 2) + 8 * f16_at(block);
}

void unpack_q5_0(const std::byte* block, const BlockCodes& to) {
    codes_32(block + 6, u32_at(block + 2), 16, to.codes);
    to.scales[0] = f16_at(block);
    to.offsets[0] = 0;
}

void unpack_q5_1(const std::byte* block, const BlockCodes& to) {
    codes_32(block + 8, u32_at(block + 4), 0, to.codes);
    to.scales[0] = f16_at(block);
    to.offsets[0] = f16_at(block + 2);
}

void unpack_q8_0(const std::byte* block, const BlockCodes& to) {
    std::memcpy(to.codes, block + 2, 32);
    to.scales[0] = f16_at(block);
    to.offsets[0] = 0;
}

void unpack_q4_k(const std::byte* block, const BlockCodes& to) {
    for (int group = 0; group < 8; ++group) {
        const auto [scale, offset] = group_scale(block, group);
        codes_of_q4_k(block, group, 8, to.codes + group * 32);
        to.scales[group] = scale;
        to.offsets[group] = 8 * scale - offset;
    }
}

void unpack_q5_k(const std::byte* block, const BlockCodes& to) {
    for (int group = 0; group < 8; ++group) {
        const auto [scale, offset] = group_scale(block, group);
        codes_of_q5_k(block, group, to.codes + group * 32);
        to.scales[group] = scale;
        to.offsets[group] = -offset;
    }
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
    if (to.offsets) std::memset(to.offsets, 0, 16 * sizeof(float));
}

}  // namespace patchbay::weights
