// What the bits of MXFP4 stand for, in safetensors and in GGUF files alike. Used by mxfp4.cpp and blocks.cpp.
// Format: Open Compute Project, "OCP Microscaling Formats (MX) Specification", version 1.0, 2023.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace patchbay::weights {

// Twice the number that 4 bits stand for (e2m1): a sign, two bits of exponent, one of mantissa.
constexpr int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of a scale 2^(bits − 127) (e8m0), since codes are twice the numbers. 255 is NaN.
inline float half_of_e8m0(std::byte bits) {
    const int exponent = std::to_integer<int>(bits);
    return exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, exponent - 128);
}

}  // namespace patchbay::weights
