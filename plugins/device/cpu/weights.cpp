#include "weights.hpp"

#include <memory>

#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sdk/weight_checks.hpp"

namespace patchbay {

constexpr uint64_t kMatrixUses = 1u << PB_WEIGHT_LINEAR | 1u << PB_WEIGHT_EMBEDDING;
constexpr uint64_t kVectorUse = 1u << PB_WEIGHT_VECTOR;

pb_weight* Weights::prepare(const pb_weight_source& source) const {
    check_weight(source);
    auto weight = std::make_unique<pb_weight>();
    weight->uses = source.uses | uint64_t{1} << source.role;
    weight->rows = source.rows;
    weight->cols = source.cols;
    if (source.quant) {
        weight->matrix = kernels::PackedMatrix::pack(machine_, {.dtype = source.dtype,
                                                                .rows = source.rows,
                                                                .cols = source.cols,
                                                                .codes = source.data,
                                                                .group = source.quant->group,
                                                                .scales = source.quant->scales,
                                                                .offsets = source.quant->offsets,
                                                                .order = source.quant->order,
                                                                .bias = static_cast<const float*>(source.bias)});
        return weight.release();
    }
    if (weight->uses & kMatrixUses)
        weight->matrix = kernels::PackedMatrix::pack(machine_, source.dtype, source.rows, source.cols, source.data,
                                                     source.bias);
    if (weight->uses & kVectorUse) {
        weight->vector.resize(size_t(source.rows * source.cols));
        for (size_t i = 0; i < weight->vector.size(); ++i)
            weight->vector[i] = source.dtype == PB_BF16 ? bf16_to_f32(static_cast<const uint16_t*>(source.data)[i])
                                                        : static_cast<const float*>(source.data)[i];
    }
    return weight.release();
}

uint64_t Weights::bytes(const pb_weight* weight) const {
    return (weight->matrix ? weight->matrix->bytes() : 0) + weight->vector.size() * sizeof(float);
}

}  // namespace patchbay
