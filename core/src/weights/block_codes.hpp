// GGUF's blocks of quantised numbers as codes, without a detour over real numbers. Used by the loader.
#pragma once
#include <memory>

#include "weights/checkpoint.hpp"
#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

// Null where the piece cannot stay in codes: its tensor is real, lies by columns, or is cut within a group.
std::shared_ptr<const CodeSource> block_codes(const Piece&, const TensorView&);

}  // namespace patchbay::weights
