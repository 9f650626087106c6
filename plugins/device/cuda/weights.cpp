// Weights in the GPU's memory: f32 and bf16 as they are, codes as the numbers that they stand for.
#include <algorithm>
#include <memory>

#include "cuda.hpp"
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

WeightShape CudaDevice::shape_of(const pb_weight* w) {
    return {w->uses, w->matrix.rows ? w->matrix.rows : 1, w->matrix.rows ? w->matrix.cols : w->vector_size};
}

template <class T>
const T* CudaDevice::upload(pb_weight& weight, const T* from, uint64_t count) {
    void* const memory = take(count * sizeof(T));
    weight.memory.push_back(memory);
    weight.bytes += count * sizeof(T);
    staging_->upload(memory, from, count * sizeof(T));
    return static_cast<const T*>(memory);
}

// Codes become bf16, or f32 beside f32 activations: 2 or 4 bytes each in the GPU's memory, whatever they were.
pb_weight* CudaDevice::prepare(const pb_weight_source& source) {
    use();
    check_weight(source);
    const auto give_back = [this](pb_weight* w) { release(w); };
    std::unique_ptr<pb_weight, decltype(give_back)> weight(new pb_weight, give_back);
    weight->uses = source.uses | uint64_t{1} << source.role;
    const int64_t count = source.rows * source.cols;
    if (weight->uses & kMatrixUses) {
        kernels::cuda::DeviceMatrix& matrix = weight->matrix;
        matrix.dtype = source.quant ? activation_dtype_ : source.dtype;
        if (source.quant) {
            const pb_quant& quant = *source.quant;
            const int64_t groups = (source.cols + quant.group - 1) / quant.group;
            const int64_t row_bytes = source.dtype == PB_I4 ? (source.cols + 1) / 2 : source.cols;
            const auto many = static_cast<uint64_t>(source.rows * groups);
            std::unique_ptr<pb_weight, decltype(give_back)> codes(new pb_weight, give_back); // for now
            kernels::cuda::Codes on_device;
            on_device.dtype = source.dtype;
            on_device.rows = source.rows;
            on_device.cols = source.cols;
            on_device.group = quant.group;
            on_device.codes = upload(*codes, static_cast<const uint8_t*>(source.data),
                                     static_cast<uint64_t>(source.rows * row_bytes));
            on_device.scales = upload(*codes, quant.scales, many);
            if (quant.offsets) on_device.offsets = upload(*codes, quant.offsets, many);
            if (quant.order) on_device.order = upload(*codes, quant.order, static_cast<uint64_t>(source.cols));
            weight->bytes = static_cast<uint64_t>(count * dtype_bytes(matrix.dtype));
            void* const memory = take(weight->bytes);
            weight->memory.push_back(memory);
            kernels::cuda::dequantise(stream_, memory, matrix.dtype, on_device);
            check_cuda(cudaGetLastError(), "turning codes into numbers");
            matrix.data = memory;
        } else {
            matrix.data = upload(*weight, static_cast<const uint8_t*>(source.data),
                                 static_cast<uint64_t>(count * dtype_bytes(source.dtype)));
        }
        matrix.rows = source.rows;
        matrix.cols = source.cols;
        if (source.bias) {
            const pb_dtype of_bias = source.quant ? PB_F32 : source.dtype;
            matrix.bias = upload(*weight, widened(source.bias, of_bias, source.rows).data(),
                                 static_cast<uint64_t>(source.rows));
        }
    }
    if (weight->uses & kVectorUse) {
        weight->vector =
            upload(*weight, widened(source.data, source.dtype, count).data(), static_cast<uint64_t>(count));
        weight->vector_size = count;
    }
    check_cuda(cudaStreamSynchronize(stream_), "preparing a weight");
    return weight.release();
}

void CudaDevice::release(pb_weight* weight) {
    if (!weight) return;
    cudaSetDevice(index_);
    for (auto at = expert_tables_.begin(); at != expert_tables_.end();) {
        const bool used = std::find(at->first.begin(), at->first.end(), weight) != at->first.end();
        if (used) cudaFreeAsync(at->second, stream_);
        at = used ? expert_tables_.erase(at) : std::next(at);
    }
    for (void* memory : weight->memory) cudaFreeAsync(memory, stream_);
    delete weight;
}

}  // namespace patchbay
