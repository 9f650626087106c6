// Numbers of one floating dtype as another, for loading weights. Sources may be unaligned.
#pragma once
#include <cstddef>
#include <cstdint>

#include "patchbay/abi/tensor.h"

namespace patchbay::weights {

float f16_to_f32(uint16_t);
// from: F32, BF16 or F16; to: F32 or BF16 (round to nearest, ties to even). count elements each.
void convert(pb_dtype from, const std::byte* source, pb_dtype to, std::byte* target, int64_t count);

}  // namespace patchbay::weights
