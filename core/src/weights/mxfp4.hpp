// MXFP4 linears, as of gpt-oss's experts: numbers of 4 bits (e2m1) and, for each 32 columns, a power of two (e8m0) that
// they are multiplied by. Exact as codes of 8 bits, and as bf16. Used by the loader.
#pragma once
#include <memory>
#include <string>

#include "base/result.hpp"
#include "weights/checkpoint.hpp"
#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

// A piece of the linear (rows, cols) that is stored as `module`.weight_blocks (rows, cols / 32, 16), two numbers in a
// byte, the even column in its low half, and `module`.weight_scales (rows, cols / 32), both u8.
Result<std::shared_ptr<const CodeSource>> mxfp4_codes(const Checkpoint&, const std::string& module, const Piece&);

}  // namespace patchbay::weights
