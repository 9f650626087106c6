#include "weights.hpp"

#include <memory>

#include "patchbay/plugin.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sdk/weight_checks.hpp"

namespace patchbay {
namespace {

constexpr uint64_t kMatrixUses = 1u << PB_WEIGHT_LINEAR | 1u << PB_WEIGHT_EMBEDDING;
constexpr uint64_t kVectorUse = 1u << PB_WEIGHT_VECTOR;

std::vector<float> widened(const void* data, pb_dtype dtype, int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i)
        out[i] = dtype == PB_BF16 ? bf16_to_f32(static_cast<const uint16_t*>(data)[i])
                                  : static_cast<const float*>(data)[i];
    return out;
}

}  // namespace

WeightShape shape_of(const pb_weight* w) {
    return {w->uses, w->matrix.rows ? w->matrix.rows : 1, w->matrix.rows ? w->matrix.cols : w->vector_size};
}

template <class T>
const T* Weights::upload(pb_weight& weight, const T* from, uint64_t count) {
    const GpuMemory& memory = weight.memory.emplace_back(gpu_, count * sizeof(T));
    weight.bytes += memory.bytes();
    staging_.upload(memory.data(), from, memory.bytes());
    return static_cast<const T*>(memory.data());
}

const void* Weights::widened_codes(pb_weight& weight, const pb_weight_source& source, pb_dtype dtype) {
    const pb_quant& quant = *source.quant;
    const int64_t groups = (source.cols + quant.group - 1) / quant.group;
    const int64_t row_bytes = source.dtype == PB_I4 ? (source.cols + 1) / 2 : source.cols;
    const auto many = static_cast<uint64_t>(source.rows * groups);
    pb_weight codes; // for now
    kernels::cuda::Codes on_device;
    on_device.dtype = source.dtype;
    on_device.rows = source.rows;
    on_device.cols = source.cols;
    on_device.group = quant.group;
    on_device.codes =
        upload(codes, static_cast<const uint8_t*>(source.data), static_cast<uint64_t>(source.rows * row_bytes));
    on_device.scales = upload(codes, quant.scales, many);
    if (quant.offsets) on_device.offsets = upload(codes, quant.offsets, many);
    if (quant.order) on_device.order = upload(codes, quant.order, static_cast<uint64_t>(source.cols));
    const GpuMemory& numbers = weight.memory.emplace_back(
        gpu_, static_cast<uint64_t>(source.rows * source.cols * dtype_bytes(dtype)));
    weight.bytes += numbers.bytes();
    kernels::cuda::dequantise(gpu_.stream(), numbers.data(), dtype, on_device);
    check_cuda(cudaGetLastError(), "turning codes into numbers");
    return numbers.data();
}

void Weights::add_matrix(pb_weight& weight, const pb_weight_source& source) {
    kernels::cuda::DeviceMatrix& matrix = weight.matrix;
    matrix.dtype = source.quant ? activation_dtype_ : source.dtype;
    matrix.data = source.quant ? widened_codes(weight, source, matrix.dtype)
                               : upload(weight, static_cast<const uint8_t*>(source.data),
                                        static_cast<uint64_t>(source.rows * source.cols * dtype_bytes(source.dtype)));
    matrix.rows = source.rows;
    matrix.cols = source.cols;
    if (!source.bias) return;
    const pb_dtype of_bias = source.quant ? PB_F32 : source.dtype;
    matrix.bias = upload(weight, widened(source.bias, of_bias, source.rows).data(),
                         static_cast<uint64_t>(source.rows));
}

pb_weight* Weights::prepare(const pb_weight_source& source) {
    check_weight(source);
    auto weight = std::make_unique<pb_weight>();
    weight->uses = source.uses | uint64_t{1} << source.role;
    if (weight->uses & kMatrixUses) add_matrix(*weight, source);
    if (weight->uses & kVectorUse) {
        const int64_t count = source.rows * source.cols;
        weight->vector =
            upload(*weight, widened(source.data, source.dtype, count).data(), static_cast<uint64_t>(count));
        weight->vector_size = count;
    }
    check_cuda(cudaStreamSynchronize(gpu_.stream()), "preparing a weight");
    return weight.release();
}

void Weights::release(pb_weight* weight) {
    if (weight) experts_.forget(weight);
    delete weight;
}

}  // namespace patchbay
