// What a weight must be, before any of it is packed: what is read later is not looked at again.
#include <cmath>

#include "cpu.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

constexpr int64_t kLargestSide = int64_t{1} << 31;
constexpr int64_t kLargestArea = int64_t{1} << 40;

[[noreturn]] void refuse(pb_status code, const std::string& why) { throw Error(code, "weight: " + why); }

// values (rows, groups)
void check_finite(const char* name, const float* values, int64_t rows, int64_t groups) {
    for (int64_t i = 0; i < rows * groups; ++i)
        if (!std::isfinite(values[i]))
            refuse(PB_INVALID, std::string(name) + " " + std::to_string(i % groups) + " of row " +
                                   std::to_string(i / groups) + " is not finite");
}

void check_order(const int32_t* order, int64_t cols) {
    std::vector<bool> seen(static_cast<size_t>(cols));
    for (int64_t c = 0; c < cols; ++c) {
        if (order[c] < 0 || order[c] >= cols || seen[size_t(order[c])])
            refuse(PB_INVALID, "order[" + std::to_string(c) + "] is " + std::to_string(order[c]) +
                                   ", expected a permutation of 0 to " + std::to_string(cols - 1));
        seen[size_t(order[c])] = true;
    }
}

void check_quant(const pb_weight_source& source) {
    const pb_quant& quant = *source.quant;
    if (source.role == PB_WEIGHT_VECTOR || source.uses & uint64_t{1} << PB_WEIGHT_VECTOR)
        refuse(PB_UNSUPPORTED, "a quantised vector, this device takes quantised matrices");
    if (source.dtype != PB_I8 && source.dtype != PB_I4)
        refuse(PB_UNSUPPORTED, std::string("quantised, of dtype ") + dtype_name(source.dtype) +
                                   ", this device takes codes of i8 and i4");
    if (quant.group != 16 && quant.group != 32 && quant.group != 64 && quant.group != 128)
        refuse(PB_INVALID, "groups of " + std::to_string(quant.group) + ", expected 16, 32, 64 or 128");
    if (!quant.scales) refuse(PB_INVALID, "no scales");
    const int64_t groups = (source.cols + quant.group - 1) / quant.group;
    check_finite("scale", quant.scales, source.rows, groups);
    if (quant.offsets) check_finite("offset", quant.offsets, source.rows, groups);
    if (quant.order) check_order(quant.order, source.cols);
}

}  // namespace

void check_weight(const pb_weight_source& source) {
    if (source.role < PB_WEIGHT_LINEAR || source.role > PB_WEIGHT_VECTOR)
        refuse(PB_INVALID, "unknown role " + std::to_string(source.role));
    if (source.rows < 1 || source.cols < 1 || source.rows > kLargestSide || source.cols > kLargestSide ||
        source.rows > kLargestArea / source.cols)
        refuse(PB_INVALID, "shape (" + std::to_string(source.rows) + ", " + std::to_string(source.cols) + ")");
    if (!source.data) refuse(PB_INVALID, "no data");
    if (source.quant) return check_quant(source);
    if (source.dtype == PB_I8 || source.dtype == PB_I4)
        refuse(PB_INVALID, std::string("codes of ") + dtype_name(source.dtype) + " without scales");
    if (source.dtype != PB_F32 && source.dtype != PB_BF16)
        refuse(PB_UNSUPPORTED, std::string("dtype ") + dtype_name(source.dtype) +
                                   ", this device takes f32 and bf16, and quantised i8 and i4");
}

}  // namespace patchbay
