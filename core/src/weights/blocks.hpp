// GGUF's blocks of quantised numbers as f32. Each function takes one block and writes 32 numbers, or 256 of the kinds
// that end in K. Layouts: https://github.com/ggml-org/ggml (block_q4_0 and the others). Used by decode().
#pragma once
#include <cstddef>

namespace patchbay::weights {

void decode_q4_0(const std::byte* block, float* out);
void decode_q4_1(const std::byte* block, float* out);
void decode_q5_0(const std::byte* block, float* out);
void decode_q5_1(const std::byte* block, float* out);
void decode_q8_0(const std::byte* block, float* out);
void decode_q4_k(const std::byte* block, float* out);
void decode_q5_k(const std::byte* block, float* out);
void decode_q6_k(const std::byte* block, float* out);

}  // namespace patchbay::weights
