// Devices for quantised weights, each of which reads one kind of code wrongly. For devices.cpp.
#pragma once
#include <vector>

#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace specimens {

// The f32 that a quantised weight stands for, column c of the codes going to order[c]. code(r, c) reads one.
template <class Code>
std::vector<float> dequantised(const pb_weight_source& s, const int32_t* order, Code&& code) {
    const int64_t groups = (s.cols + s.quant->group - 1) / s.quant->group;
    std::vector<float> out(static_cast<size_t>(s.rows * s.cols));
    for (int64_t r = 0; r < s.rows; ++r)
        for (int64_t c = 0; c < s.cols; ++c) {
            const int64_t g = r * groups + c / s.quant->group;
            out[static_cast<size_t>(r * s.cols + (order ? order[c] : c))] =
                float(code(r, c)) * s.quant->scales[g] + (s.quant->offsets ? s.quant->offsets[g] : 0);
        }
    return out;
}

template <class Base>
struct ReadsCodes : Base {
    template <class Code>
    pb_weight* as_f32(pb_weight_source s, const int32_t* order, Code&& code) {
        const std::vector<float> values = dequantised(s, order, code);
        s.dtype = PB_F32;
        s.data = values.data();
        return Base::prepare(s);
    }
};

template <class Base>
struct ForgetsTheOrder : ReadsCodes<Base> { // of codes of 8 bits; others it does not take
    pb_weight* prepare(const pb_weight_source& s) {
        if (!s.quant || s.dtype != PB_I8) return Base::prepare(s);
        return this->as_f32(s, nullptr,
                            [&](int64_t r, int64_t c) { return static_cast<const int8_t*>(s.data)[r * s.cols + c]; });
    }
};

template <class Base>
struct TakesTheHighHalfFirst : ReadsCodes<Base> { // of codes of 4 bits; others it does not take
    pb_weight* prepare(const pb_weight_source& s) {
        if (!s.quant || s.dtype != PB_I4) return Base::prepare(s);
        return this->as_f32(s, s.quant->order, [&](int64_t r, int64_t c) {
            const int byte = static_cast<const uint8_t*>(s.data)[r * ((s.cols + 1) / 2) + c / 2];
            return (((c % 2 ? byte : byte >> 4) & 15) ^ 8) - 8;
        });
    }
};

template <class Base>
struct HalvesTheSmallest : ReadsCodes<Base> { // of fp8 whose exponent is 0; codes of 8 or 4 bits it does not take
    pb_weight* prepare(const pb_weight_source& s) {
        if (!s.quant || s.dtype != PB_FP8) return Base::prepare(s);
        return this->as_f32(s, nullptr, [&](int64_t r, int64_t c) {
            const uint8_t code = static_cast<const uint8_t*>(s.data)[r * s.cols + c];
            return code % 128 < 8 ? patchbay::fp8_to_f32(code) / 2 : patchbay::fp8_to_f32(code);
        });
    }
};

}  // namespace specimens
