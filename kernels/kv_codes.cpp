#include "kernels/kv_codes.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace patchbay::kernels {
namespace {

constexpr float kLeast = 1e-30f; // below which 127 / x may be infinite

// To the nearest whole number, ties to even, in the low bits.
uint8_t to_int8(float x) { return static_cast<uint8_t>(std::bit_cast<uint32_t>(x + 0x1.8p23f)); }

}  // namespace

float to_codes(pb_dtype kv, const float* x, int64_t n, uint8_t* codes) {
    // As whole numbers: magnitudes are in order then, with those that are not finite above all others.
    uint32_t max_bits = 0;
    for (int64_t i = 0; i < n; ++i) max_bits = std::max(max_bits, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
    const float greatest = std::bit_cast<float>(max_bits);
    if (max_bits >= 0x7f800000u || greatest < kLeast) {
        std::memset(codes, 0, static_cast<size_t>(n));
        return max_bits >= 0x7f800000u ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    }
    const float top = kv == PB_FP8 ? 448.0f : 127.0f, factor = top / greatest;
    if (kv == PB_FP8)
        for (int64_t i = 0; i < n; ++i) codes[i] = f32_to_fp8(x[i] * factor);
    else
        for (int64_t i = 0; i < n; ++i) codes[i] = to_int8(x[i] * factor);
    return greatest / top;
}

}  // namespace patchbay::kernels
