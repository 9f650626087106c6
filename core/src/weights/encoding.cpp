#include "weights/encoding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "patchbay/sdk/tensor.hpp"
#include "weights/blocks.hpp"
#include "weights/convert.hpp"

namespace patchbay::weights {
namespace {

void decode_block(const BlockKind& kind, const std::byte* block, int64_t count, float* out) {
    std::array<int8_t, kMaxBlock> codes;
    std::array<float, kMaxGroups> scales, offsets;
    kind.unpack(block, {codes.data(), scales.data(), offsets.data()});
    for (size_t i = 0; i < static_cast<size_t>(count);)
        for (const size_t group = i / kind.form.group, end = i + kind.form.group; i < end; ++i)
            out[i] = static_cast<float>(codes[i]) * scales[group] + offsets[group];
}

// A sign, 4 bits of exponent and 3 of mantissa; all ones: NaN.
float from_e4m3(uint8_t bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const float size = exponent == 15 && mantissa == 7 ? std::numeric_limits<float>::quiet_NaN()
                       : exponent == 0                 ? std::ldexp(static_cast<float>(mantissa), -9)
                                                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    return bits & 0x80 ? -size : size;
}

void decode_e4m3(const std::byte* from, int64_t count, pb_dtype to, std::byte* target) {
    static const std::array<float, 256> kNumbers = [] {
        std::array<float, 256> out;
        for (size_t i = 0; i < out.size(); ++i) out[i] = from_e4m3(static_cast<uint8_t>(i));
        return out;
    }();
    std::array<float, 256> some;
    for (int64_t done = 0; done < count;) {
        const int64_t n = std::min<int64_t>(some.size(), count - done);
        for (int64_t i = 0; i < n; ++i)
            some[static_cast<size_t>(i)] = kNumbers[std::to_integer<size_t>(from[done + i])];
        convert(PB_F32, reinterpret_cast<const std::byte*>(some.data()), to, target, n);
        target += n * dtype_bytes(to);
        done += n;
    }
}

}  // namespace

EncodingFacts facts_of(Encoding encoding) {
    static constexpr EncodingFacts kFacts[] = {
        {"f32", 1, 4, 0},       {"bf16", 1, 2, 30},      {"f16", 1, 2, 1},      {"i32", 1, 4, 26},
        {"i64", 1, 8, 27},      {"i8", 1, 1, 24},        {"u8", 1, 1},          {"Q4_0", 32, 18, 2},
        {"Q4_1", 32, 20, 3},    {"Q5_0", 32, 22, 6},     {"Q5_1", 32, 24, 7},   {"Q8_0", 32, 34, 8},
        {"Q2_K", 256, 84, 10},  {"Q3_K", 256, 110, 11},  {"Q4_K", 256, 144, 12}, {"Q5_K", 256, 176, 13},
        {"Q6_K", 256, 210, 14}, {"IQ4_NL", 32, 18, 20},  {"IQ4_XS", 256, 136, 23}, {"MXFP4", 32, 17, 39},
        {"F8_E4M3", 1, 1},
    };
    return kFacts[static_cast<size_t>(encoding)];
}

void decode(Encoding encoding, const std::byte* tensor, int64_t first, int64_t count, pb_dtype to, std::byte* target) {
    const EncodingFacts facts = facts_of(encoding);
    if (!in_blocks(encoding))
        return convert(*dtype_of(encoding), tensor + first * facts.block_bytes, to, target, count);
    if (encoding == Encoding::kF8_E4M3) return decode_e4m3(tensor + first, count, to, target);
    const BlockKind& kind = *block_kind(encoding);
    std::array<float, kMaxBlock> numbers;
    for (int64_t i = first; i < first + count;) {
        decode_block(kind, tensor + i / facts.block * facts.block_bytes, facts.block, numbers.data());
        const int64_t skipped = i % facts.block, n = std::min(facts.block - skipped, first + count - i);
        convert(PB_F32, reinterpret_cast<const std::byte*>(numbers.data() + skipped), to, target, n);
        target += n * dtype_bytes(to);
        i += n;
    }
}

}  // namespace patchbay::weights
