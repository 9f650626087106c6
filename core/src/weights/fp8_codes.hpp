// Tensors of fp8 (e4m3) as they are stored, with the scales of their blocks as those of groups of columns. Used by the
// loader.
#pragma once
#include <memory>

#include "weights/checkpoint.hpp"
#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

// Null where the piece cannot stay as it is: its tensor is no fp8, or its blocks are no groups of pb_quant.
std::shared_ptr<const CodeSource> fp8_codes(const Piece&, const TensorView&);

}  // namespace patchbay::weights
