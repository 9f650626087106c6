// Tensors of fp8 (e4m3) as they are stored, with the scales of their blocks as those of groups of columns. Used by the
// loader.
#pragma once
#include <cstdint>
#include <memory>

#include "weights/checkpoint.hpp"
#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

// Columns of a group of pb_quant, where `block_cols` columns share a scale (0: all). Below 16: there is none.
uint32_t fp8_group(int64_t block_cols, const Piece&);

// Null where the piece cannot stay as it is: its tensor is no fp8, its blocks are no groups of pb_quant, or a scale is
// greater than devices take.
std::shared_ptr<const CodeSource> fp8_codes(const Piece&, const TensorView&);

}  // namespace patchbay::weights
