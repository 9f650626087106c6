#include "conformance/device_weights.hpp"

#include <cstddef>

#include "conformance/lent_memory.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

const pb_weight_source* lend(const pb_weight_source& source, LentMemory& memory) {
    const auto rows = static_cast<size_t>(source.rows), cols = static_cast<size_t>(source.cols);
    const auto bytes = [&](const void* from, size_t count) {
        return from ? memory.lend(static_cast<const std::byte*>(from), count) : nullptr;
    };
    const size_t row_bytes = source.dtype == PB_I4 ? (cols + 1) / 2
                                                     : cols * static_cast<size_t>(dtype_bytes(source.dtype));
    pb_weight_source out = source;
    out.data = bytes(source.data, rows * row_bytes);
    const size_t bias_bytes = source.quant ? sizeof(float) : static_cast<size_t>(dtype_bytes(source.dtype));
    out.bias = bytes(source.bias, rows * bias_bytes);
    if (source.quant) {
        pb_quant quant = *source.quant;
        const size_t scales = rows * ((cols + quant.group - 1) / quant.group);
        quant.scales = memory.lend(quant.scales, scales);
        if (quant.offsets) quant.offsets = memory.lend(quant.offsets, scales);
        if (quant.order) quant.order = memory.lend(quant.order, cols);
        out.quant = memory.lend(quant);
    }
    return memory.lend(out);
}

}  // namespace

DeviceWeights::~DeviceWeights() {
    for (pb_weight* w : weights_) table().release(component_.self(), w);
}

Result<const pb_weight*> DeviceWeights::make(pb_weight_role role, int64_t rows, int64_t cols, const Floats& values,
                                             const Floats& bias, uint64_t uses, pb_dtype dtype) {
    const auto data = encode(values, dtype), bias_data = encode(bias, dtype);
    const pb_weight_source source{sizeof source,
                                  role,
                                  dtype,
                                  0,
                                  rows,
                                  cols,
                                  data.data(),
                                  bias.empty() ? nullptr : bias_data.data(),
                                  uses | uint64_t{1} << role,
                                  nullptr};
    return prepare(source);
}

Result<const pb_weight*> DeviceWeights::prepare(const pb_weight_source& source) {
    pb_weight* w = nullptr;
    LentMemory lent;
    const pb_weight_source* const given = lent_ ? lend(source, lent) : &source;
    PB_CHECK(component_.check(table().prepare(component_.self(), given, &w), "prepare"));
    if (!lent.end_call()) return fail("prepare writes past the end of what it is given");
    if (!w) return fail("prepare gave no weight");
    weights_.push_back(w);
    return static_cast<const pb_weight*>(w);
}

}  // namespace patchbay::conformance
