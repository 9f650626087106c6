#include "weights.hpp"

#include <memory>

#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sdk/weight_checks.hpp"

namespace patchbay {
namespace {

[[noreturn]] void refuse(pb_status code, const std::string& why) { throw Error(code, "weight: " + why); }

void check_shape(const pb_weight_source& source) {
    constexpr int64_t kLargestSide = int64_t{1} << 31, kLargestArea = int64_t{1} << 40;
    if (source.role < PB_WEIGHT_LINEAR || source.role > PB_WEIGHT_VECTOR)
        refuse(PB_INVALID, "unknown role " + std::to_string(source.role));
    if (source.rows < 1 || source.cols < 1 || source.rows > kLargestSide || source.cols > kLargestSide ||
        source.rows > kLargestArea / source.cols)
        refuse(PB_INVALID, "shape (" + std::to_string(source.rows) + ", " + std::to_string(source.cols) + ")");
}

// As hardware stores it: codes without padding, and f16 scales.
uint64_t bytes_of(const pb_weight_source& source) {
    constexpr uint64_t kScaleBytes = 2;
    const auto rows = static_cast<uint64_t>(source.rows), cols = static_cast<uint64_t>(source.cols);
    if (source.quant) {
        if (!is_code(source.dtype))
            refuse(PB_UNSUPPORTED, std::string("quantised, of dtype ") + dtype_name(source.dtype) +
                                       ", this device takes codes of i8, i4 and fp8");
        if (source.quant->group == 0) refuse(PB_INVALID, "groups of 0 columns");
        const uint64_t groups = (cols + source.quant->group - 1) / source.quant->group;
        const uint64_t scales = groups * kScaleBytes * (source.quant->offsets ? 2 : 1);
        return rows * ((source.dtype == PB_I4 ? (cols + 1) / 2 : cols) + scales + (source.bias ? sizeof(float) : 0));
    }
    if (is_code(source.dtype))
        refuse(PB_INVALID, std::string("codes of ") + dtype_name(source.dtype) + " without scales");
    if (source.dtype != PB_F32 && source.dtype != PB_BF16)
        refuse(PB_UNSUPPORTED, std::string("dtype ") + dtype_name(source.dtype) +
                                   ", this device takes f32 and bf16, and quantised i8, i4 and fp8");
    return rows * (cols + (source.bias ? 1 : 0)) * static_cast<uint64_t>(dtype_bytes(source.dtype));
}

}  // namespace

pb_weight* Weights::prepare(const pb_weight_source& source) {
    check_shape(source);
    const uint64_t uses = source.uses | uint64_t{1} << source.role, bytes = bytes_of(source);
    memory_.take(bytes, "a weight");
    return new pb_weight{uses, source.rows, source.cols, bytes, hardware_.peak(source.dtype)};
}

void Weights::release(pb_weight* weight) {
    const std::unique_ptr<pb_weight> owned(weight);
    memory_.give_back(owned->bytes);
}

}  // namespace patchbay
