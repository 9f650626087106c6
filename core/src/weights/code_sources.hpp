// Tensors that checkpoints store as codes, as codes without a detour over real numbers. Used by the loader.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "weights/checkpoint.hpp"
#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

// GGUF's blocks. Null where the piece cannot stay in codes: its tensor is real, lies by columns, or is cut within a
// group.
std::shared_ptr<const CodeSource> block_codes(const Piece&, const TensorView&);

// fp8 (e4m3) as it is stored, with the scales of its blocks as those of groups of columns. Null where the piece cannot
// stay as it is: its tensor is no fp8, its blocks are no groups of pb_quant, or a scale is greater than devices take.
std::shared_ptr<const CodeSource> fp8_codes(const Piece&, const TensorView&);
// Columns of a group of pb_quant, where `block_cols` columns share a scale (0: all). Below 16: there is none.
uint32_t fp8_group(int64_t block_cols, const Piece&);

// MXFP4, as of gpt-oss's experts: numbers of 4 bits (e2m1) and, for each 32 columns, a power of two (e8m0) that they
// are multiplied by. Exact as codes of 8 bits, and as bf16. The linear (rows, cols) is stored as `module`.weight_blocks
// (rows, cols / 32, 16), two numbers in a byte, the even column in its low half, and `module`.weight_scales (rows,
// cols / 32), both u8.
Result<std::shared_ptr<const CodeSource>> mxfp4_codes(const Checkpoint&, const std::string& module, const Piece&);

}  // namespace patchbay::weights
