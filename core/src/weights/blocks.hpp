// GGUF's blocks of quantised numbers as f32. Each function takes one block and writes 32 numbers, or 256 of the kinds
// that end in K or XS. Layouts: https://github.com/ggml-org/ggml (block_q4_0 and the others). Used by decode() and
// unpack_codes().
#pragma once
#include <cstddef>
#include <cstdint>

namespace patchbay::weights {

void decode_q4_0(const std::byte* block, float* out);
void decode_q4_1(const std::byte* block, float* out);
void decode_q5_0(const std::byte* block, float* out);
void decode_q5_1(const std::byte* block, float* out);
void decode_q8_0(const std::byte* block, float* out);
void decode_q2_k(const std::byte* block, float* out);
void decode_q3_k(const std::byte* block, float* out);
void decode_q4_k(const std::byte* block, float* out);
void decode_q5_k(const std::byte* block, float* out);
void decode_q6_k(const std::byte* block, float* out);
void decode_iq4_nl(const std::byte* block, float* out);
void decode_iq4_xs(const std::byte* block, float* out);
void decode_mxfp4(const std::byte* block, float* out);

// The same as w = code · scale + offset, unrounded but for the offset's own rounding: a code for each number, a scale
// and an offset for each group of 32 (Q2_K, Q3_K, Q6_K: of 16).
struct BlockCodes {
    int8_t* codes;
    float *scales, *offsets;
};
void unpack_q4_0(const std::byte* block, const BlockCodes&);
void unpack_q4_1(const std::byte* block, const BlockCodes&);
void unpack_q5_0(const std::byte* block, const BlockCodes&);
void unpack_q5_1(const std::byte* block, const BlockCodes&);
void unpack_q8_0(const std::byte* block, const BlockCodes&);
void unpack_q2_k(const std::byte* block, const BlockCodes&);
void unpack_q3_k(const std::byte* block, const BlockCodes&);
void unpack_q4_k(const std::byte* block, const BlockCodes&);
void unpack_q5_k(const std::byte* block, const BlockCodes&);
void unpack_q6_k(const std::byte* block, const BlockCodes&);
void unpack_iq4_nl(const std::byte* block, const BlockCodes&);
void unpack_iq4_xs(const std::byte* block, const BlockCodes&);
void unpack_mxfp4(const std::byte* block, const BlockCodes&);

}  // namespace patchbay::weights
