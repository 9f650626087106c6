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

void decode_block(Encoding encoding, const std::byte* block, float* out) {
    switch (encoding) {
        case Encoding::kQ4_0: return decode_q4_0(block, out);
        case Encoding::kQ4_1: return decode_q4_1(block, out);
        case Encoding::kQ5_0: return decode_q5_0(block, out);
        case Encoding::kQ5_1: return decode_q5_1(block, out);
        case Encoding::kQ8_0: return decode_q8_0(block, out);
        case Encoding::kQ2_K: return decode_q2_k(block, out);
        case Encoding::kQ3_K: return decode_q3_k(block, out);
        case Encoding::kQ4_K: return decode_q4_k(block, out);
        case Encoding::kQ5_K: return decode_q5_k(block, out);
        case Encoding::kQ6_K: return decode_q6_k(block, out);
        case Encoding::kIQ4_NL: return decode_iq4_nl(block, out);
        case Encoding::kIQ4_XS: return decode_iq4_xs(block, out);
        case Encoding::kMXFP4: return decode_mxfp4(block, out);
        default:
            return;  // plain
    }
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
        {"f32", 1, 4},      {"bf16", 1, 2},     {"f16", 1, 2},      {"i32", 1, 4},      {"i64", 1, 8},
        {"i8", 1, 1},       {"u8", 1, 1},       {"Q4_0", 32, 18},   {"Q4_1", 32, 20},   {"Q5_0", 32, 22},
        {"Q5_1", 32, 24},   {"Q8_0", 32, 34},   {"Q2_K", 256, 84},  {"Q3_K", 256, 110}, {"Q4_K", 256, 144},
        {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136}, {"MXFP4", 32, 17},
        {"F8_E4M3", 1, 1},
    };
    return kFacts[static_cast<size_t>(encoding)];
}

void decode(Encoding encoding, const std::byte* tensor, int64_t first, int64_t count, pb_dtype to, std::byte* target) {
    const EncodingFacts facts = facts_of(encoding);
    if (!in_blocks(encoding))
        return convert(*dtype_of(encoding), tensor + first * facts.block_bytes, to, target, count);
    if (encoding == Encoding::kF8_E4M3) return decode_e4m3(tensor + first, count, to, target);
    std::array<float, 256> numbers;
    for (int64_t i = first; i < first + count;) {
        decode_block(encoding, tensor + i / facts.block * facts.block_bytes, numbers.data());
        const int64_t skipped = i % facts.block, n = std::min(facts.block - skipped, first + count - i);
        convert(PB_F32, reinterpret_cast<const std::byte*>(numbers.data() + skipped), to, target, n);
        target += n * dtype_bytes(to);
        i += n;
    }
}

}  // namespace patchbay::weights
