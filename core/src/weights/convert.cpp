#include "weights/convert.hpp"

#include <bit>
#include <cstring>

#include "patchbay/sdk/tensor.hpp"
#include "weights/raw_value.hpp"

namespace patchbay::weights {
namespace {

template <class From, class Widen>
void convert_from(const std::byte* source, pb_dtype to, std::byte* target, int64_t count, Widen widen) {
    if (to == PB_F32) {
        for (int64_t i = 0; i < count; ++i) {
            const float value = widen(raw_value<From>(source + i * static_cast<int64_t>(sizeof(From))));
            std::memcpy(target + i * 4, &value, 4);
        }
    } else {
        for (int64_t i = 0; i < count; ++i) {
            const From from = raw_value<From>(source + i * static_cast<int64_t>(sizeof(From)));
            const uint16_t value = f32_to_bf16(widen(from));
            std::memcpy(target + i * 2, &value, 2);
        }
    }
}

}  // namespace

// Without a branch, so that loops over it use vectors: an f16's exponent and mantissa in an f32's places give the
// number times 2^-112, also where it is subnormal; infinities and NaNs get the highest exponent.
float f16_to_f32(uint16_t h) {
    const uint32_t magnitude = (h & 0x7fffu) << 13, sign = (h & 0x8000u) << 16;
    const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    return std::bit_cast<float>(sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite));
}

void convert(pb_dtype from, const std::byte* source, pb_dtype to, std::byte* target, int64_t count) {
    if (from == to)
        std::memcpy(target, source, static_cast<size_t>(count * dtype_bytes(to)));
    else if (from == PB_F32)
        convert_from<float>(source, to, target, count, [](float x) { return x; });
    else if (from == PB_BF16)
        convert_from<uint16_t>(source, to, target, count, bf16_to_f32);
    else
        convert_from<uint16_t>(source, to, target, count, f16_to_f32);
}

}  // namespace patchbay::weights
