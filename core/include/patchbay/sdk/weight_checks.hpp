// patchbay/sdk/weight_checks.hpp - what a weight must be, before a device packs or copies any of it: f32 or bf16, or
// codes of 8 or 4 bits or fp8 with finite scales. For devices that take all of these.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "patchbay/abi/device.h"
#include "patchbay/plugin.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

inline constexpr float kMaxFp8Scale = 0x1p100f; // scales of fp8 are less, so that products stay finite on their way

inline bool is_code(pb_dtype dtype) { return dtype == PB_I8 || dtype == PB_I4 || dtype == PB_FP8; } // has scales

namespace detail {

inline constexpr int64_t kLargestSide = int64_t{1} << 31;
inline constexpr int64_t kLargestArea = int64_t{1} << 40;

[[noreturn]] inline void refuse_weight(pb_status code, const std::string& why) {
    throw Error(code, "weight: " + why);
}

// values (rows, groups)
inline void check_finite(const char* name, const float* values, int64_t rows, int64_t groups) {
    for (int64_t i = 0; i < rows * groups; ++i)
        if (!std::isfinite(values[i]))
            refuse_weight(PB_INVALID, std::string(name) + " " + std::to_string(i % groups) + " of row " +
                                   std::to_string(i / groups) + " is not finite");
}

inline void check_order(const int32_t* order, int64_t cols) {
    std::vector<bool> seen(static_cast<size_t>(cols));
    for (int64_t c = 0; c < cols; ++c) {
        if (order[c] < 0 || order[c] >= cols || seen[size_t(order[c])])
            refuse_weight(PB_INVALID, "order[" + std::to_string(c) + "] is " + std::to_string(order[c]) +
                                   ", expected a permutation of 0 to " + std::to_string(cols - 1));
        seen[size_t(order[c])] = true;
    }
}

inline void check_fp8(const pb_weight_source& source) {
    const int64_t scales = source.rows * ((source.cols + source.quant->group - 1) / source.quant->group);
    for (int64_t i = 0; i < scales; ++i)
        if (!(std::abs(source.quant->scales[i]) < kMaxFp8Scale))
            refuse_weight(PB_INVALID, "a scale of fp8 is " + std::to_string(source.quant->scales[i]) +
                                          ", expected less than 2^100");
    const auto* const codes = static_cast<const uint8_t*>(source.data);
    for (int64_t i = 0; i < source.rows * source.cols; ++i)
        if ((codes[i] & 0x7f) == 0x7f)
            refuse_weight(PB_INVALID, "column " + std::to_string(i % source.cols) + " of row " +
                                          std::to_string(i / source.cols) + " is NaN");
}

inline void check_quant_form(const pb_weight_source& source) {
    const pb_quant& quant = *source.quant;
    if (source.role == PB_WEIGHT_VECTOR || source.uses & uint64_t{1} << PB_WEIGHT_VECTOR)
        refuse_weight(PB_UNSUPPORTED, "a quantised vector, this device takes quantised matrices");
    if (!is_code(source.dtype))
        refuse_weight(PB_UNSUPPORTED, std::string("quantised, of dtype ") + dtype_name(source.dtype) +
                                   ", this device takes codes of i8, i4 and fp8");
    if (quant.group != 16 && quant.group != 32 && quant.group != 64 && quant.group != 128)
        refuse_weight(PB_INVALID, "groups of " + std::to_string(quant.group) + ", expected 16, 32, 64 or 128");
    if (source.dtype == PB_FP8 && (quant.offsets || quant.order))
        refuse_weight(PB_INVALID, "fp8 with offsets or an order of columns, expected neither");
}

inline void check_quant_values(const pb_weight_source& source) {
    const pb_quant& quant = *source.quant;
    if (!quant.scales) refuse_weight(PB_INVALID, "no scales");
    const int64_t groups = (source.cols + quant.group - 1) / quant.group;
    check_finite("scale", quant.scales, source.rows, groups);
    if (quant.offsets) check_finite("offset", quant.offsets, source.rows, groups);
    if (source.dtype == PB_FP8) check_fp8(source);
    if (quant.order) check_order(quant.order, source.cols);
}

}  // namespace detail

// Its role, shape, dtype and groups, as far as they can be known without its data. Throws Error where it is none, or of
// a kind not taken.
inline void check_weight_form(const pb_weight_source& source) {
    using detail::refuse_weight;
    if (source.role < PB_WEIGHT_LINEAR || source.role > PB_WEIGHT_VECTOR)
        refuse_weight(PB_INVALID, "unknown role " + std::to_string(source.role));
    if (source.rows < 1 || source.cols < 1 || source.rows > detail::kLargestSide ||
        source.cols > detail::kLargestSide ||
        source.rows > detail::kLargestArea / source.cols)
        refuse_weight(PB_INVALID, "shape (" + std::to_string(source.rows) + ", " + std::to_string(source.cols) + ")");
    if (source.quant) return detail::check_quant_form(source);
    if (is_code(source.dtype))
        refuse_weight(PB_INVALID, std::string("codes of ") + dtype_name(source.dtype) + " without scales");
    if (source.dtype != PB_F32 && source.dtype != PB_BF16)
        refuse_weight(PB_UNSUPPORTED, std::string("dtype ") + dtype_name(source.dtype) +
                                   ", this device takes f32 and bf16, and quantised i8, i4 and fp8");
}

// The same with its data, which a device that computes has.
inline void check_weight(const pb_weight_source& source) {
    check_weight_form(source);
    if (!source.data) detail::refuse_weight(PB_INVALID, "no data");
    if (source.quant) detail::check_quant_values(source);
}

}  // namespace patchbay
