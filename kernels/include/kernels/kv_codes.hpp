// KV stored as codes with one scale for each token and head: see patchbay/abi/attention.h. For the reference and the
// fast kernels alike, so that a token is stored in the same way everywhere.
#pragma once
#include <cstdint>

#include "patchbay/abi/tensor.h"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels {

constexpr bool in_codes(pb_dtype kv) { return kv == PB_FP8 || kv == PB_I8; }

// codes (n) of x (n). Returns the scale: NaN, with codes 0, if x is not finite; 0 if all of it is below 1e-30.
float to_codes(pb_dtype, const float* x, int64_t n, uint8_t* codes);

inline float from_code(pb_dtype kv, uint8_t code) {
    return kv == PB_FP8 ? fp8_to_f32(code) : static_cast<float>(static_cast<int8_t>(code));
}

}  // namespace patchbay::kernels
