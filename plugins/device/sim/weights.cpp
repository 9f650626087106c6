#include "weights.hpp"

#include <memory>

#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sdk/weight_checks.hpp"

namespace patchbay {
namespace {

// As hardware stores it: codes without padding, and f16 scales.
uint64_t bytes_of(const pb_weight_source& source) {
    constexpr uint64_t kScaleBytes = 2;
    const auto rows = static_cast<uint64_t>(source.rows), cols = static_cast<uint64_t>(source.cols);
    if (!source.quant) return rows * (cols + (source.bias ? 1 : 0)) * static_cast<uint64_t>(dtype_bytes(source.dtype));
    const uint64_t groups = (cols + source.quant->group - 1) / source.quant->group;
    const uint64_t scales = groups * kScaleBytes * (source.quant->offsets ? 2 : 1);
    return rows * ((source.dtype == PB_I4 ? (cols + 1) / 2 : cols) + scales + (source.bias ? sizeof(float) : 0));
}

}  // namespace

pb_weight* Weights::prepare(const pb_weight_source& source) {
    check_weight_form(source);
    const uint64_t uses = source.uses | uint64_t{1} << source.role, bytes = bytes_of(source);
    memory_.take(bytes, "a weight");
    return new pb_weight{uses, source.rows, source.cols, bytes, hardware_.peak(source.dtype)};
}

void Weights::release(pb_weight* weight) {
    const std::unique_ptr<pb_weight> owned(weight);
    memory_.give_back(owned->bytes);
}

}  // namespace patchbay
