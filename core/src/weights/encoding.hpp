// How numbers lie in a model's file, plain or in blocks of a few bits each, and their decoding into what devices take.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "patchbay/abi/tensor.h"

namespace patchbay::weights {

// The first seven are pb_dtype's, with its numbers. The others, but for the last, are GGUF's: blocks of 32 numbers that
// share an f16 scale (and an offset), and of 256 whose groups of 16 or 32 have scales of their own.
enum class Encoding : uint8_t {
    kF32,
    kBf16,
    kF16,
    kI32,
    kI64,
    kI8,
    kU8,
    kQ4_0,
    kQ4_1,
    kQ5_0,
    kQ5_1,
    kQ8_0,
    kQ2_K,
    kQ3_K,
    kQ4_K,
    kQ5_K,
    kQ6_K,
    kIQ4_NL,
    kIQ4_XS,
    kMXFP4,
    kF8_E4M3  // of safetensors: one byte each, without infinities; its scales are another tensor's
};

struct EncodingFacts {
    const char* name;
    int64_t block;        // numbers in a block; 1: plain
    int64_t block_bytes;  // that it takes
    int gguf_type = -1;   // as numbered by GGUF; -1: read from other files only
};
EncodingFacts facts_of(Encoding);

inline bool in_blocks(Encoding e) { return e > Encoding::kU8; }
// Whether weights can be made of it.
inline bool is_real(Encoding e) { return e <= Encoding::kF16 || in_blocks(e); }
// The dtype whose bytes these are; none: of no device's dtypes.
inline std::optional<pb_dtype> dtype_of(Encoding e) {
    return in_blocks(e) ? std::nullopt : std::optional(static_cast<pb_dtype>(e));
}

// Numbers [first, first + count) of a tensor. encoding: one that is_real(); to: PB_F32 or PB_BF16 (to the nearest, ties
// to even). The tensor's bytes may be unaligned.
void decode(Encoding, const std::byte* tensor, int64_t first, int64_t count, pb_dtype to, std::byte* target);

}  // namespace patchbay::weights
