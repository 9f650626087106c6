#include "conformance/device_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>

#include "conformance/lent_memory.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

constexpr int64_t kPadding = 24; // elements after a strided row

Floats decode(const std::vector<uint8_t>& bytes, pb_dtype dtype) {
    Floats out(bytes.size() / static_cast<size_t>(dtype_bytes(dtype)));
    for (size_t i = 0; i < out.size(); ++i) {
        uint16_t half = 0;
        if (dtype == PB_F32) std::memcpy(&out[i], bytes.data() + i * 4, 4);
        if (dtype == PB_BF16) std::memcpy(&half, bytes.data() + i * 2, 2), out[i] = bf16_to_f32(half);
        int32_t whole = 0;
        if (dtype == PB_I32) std::memcpy(&whole, bytes.data() + i * 4, 4), out[i] = static_cast<float>(whole);
    }
    return out;
}

int64_t row_width(const pb_tensor& t) { return elements(t) / t.shape[0]; }

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

std::vector<uint8_t> encode(const Floats& values, pb_dtype dtype) {
    std::vector<uint8_t> out(values.size() * static_cast<size_t>(dtype_bytes(dtype)));
    for (size_t i = 0; i < values.size(); ++i) {
        if (dtype == PB_F32) std::memcpy(out.data() + i * 4, &values[i], 4);
        const uint16_t half = f32_to_bf16(values[i]);
        if (dtype == PB_BF16) std::memcpy(out.data() + i * 2, &half, 2);
    }
    return out;
}

DeviceArrays::~DeviceArrays() {
    for (const Placed& p : placed_) table().free(component_.self(), p.memory);
}

Result<pb_tensor> DeviceArrays::place(const void* bytes, size_t size, pb_dtype dtype,
                                      std::initializer_list<int64_t> shape, int64_t row) {
    void* memory = nullptr;
    PB_CHECK(component_.check(table().alloc(component_.self(), size, &memory), "alloc"));
    placed_.push_back({memory, {static_cast<const uint8_t*>(bytes), static_cast<const uint8_t*>(bytes) + size}});
    LentMemory lent;
    const void* const from = lent_ ? lent.lend(static_cast<const std::byte*>(bytes), size) : bytes;
    PB_CHECK(component_.check(table().to_device(component_.self(), memory, from, size), "to_device"));
    if (!lent.end_call()) return fail("to_device writes past the end of what it is given");
    pb_tensor t = tensor(memory, dtype, shape, info_.host_memory ? 0 : 1);
    if (t.rank > 1) t.strides[0] = row;
    return t;
}

Result<pb_tensor> DeviceArrays::put(const Floats& values, std::initializer_list<int64_t> shape) {
    const int64_t rows = *shape.begin(), width = rows > 0 ? static_cast<int64_t>(values.size()) / rows : 0;
    const int64_t row = width + (rows_ == Rows::kStrided ? kPadding : 0);
    Floats spread(static_cast<size_t>(rows * row), NAN);
    for (int64_t r = 0; r < rows; ++r) std::copy_n(values.begin() + r * width, width, spread.begin() + r * row);
    const auto bytes = encode(spread, info_.activation_dtype);
    return place(bytes.data(), bytes.size(), info_.activation_dtype, shape, row);
}

Result<pb_tensor> DeviceArrays::poison(std::initializer_list<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return put(Floats(static_cast<size_t>(count), NAN), shape);
}

Result<pb_tensor> DeviceArrays::put_ints(const std::vector<int32_t>& values) {
    return put_ints(values, {static_cast<int64_t>(values.size())});
}

Result<pb_tensor> DeviceArrays::put_ints(const std::vector<int32_t>& values, std::initializer_list<int64_t> shape) {
    return place(values.data(), values.size() * sizeof(int32_t), PB_I32, shape,
                 static_cast<int64_t>(values.size()) / std::max<int64_t>(*shape.begin(), 1));
}

Result<pb_tensor> DeviceArrays::put_f32(const Floats& values, std::initializer_list<int64_t> shape) {
    return place(values.data(), values.size() * sizeof(float), PB_F32, shape,
                 static_cast<int64_t>(values.size()) / std::max<int64_t>(*shape.begin(), 1));
}

Result<> DeviceArrays::write(const pb_tensor& t, const Floats& values) {
    const auto bytes = encode(values, t.dtype);
    return component_.check(table().to_device(component_.self(), t.data, bytes.data(), bytes.size()), "to_device");
}

Result<Floats> DeviceArrays::read_all(const pb_tensor& t, int64_t row) {
    std::vector<uint8_t> bytes(static_cast<size_t>(t.shape[0] * row * dtype_bytes(t.dtype)));
    PB_CHECK(component_.check(table().to_host(component_.self(), bytes.data(), t.data, bytes.size()), "to_host"));
    return decode(bytes, t.dtype);
}

Result<Floats> DeviceArrays::get(const pb_tensor& t) {
    PB_TRY(const Floats spread, read_all(t, t.strides[0]));
    const int64_t width = row_width(t);
    Floats out;
    for (int64_t r = 0; r < t.shape[0]; ++r)
        out.insert(out.end(), spread.begin() + r * t.strides[0], spread.begin() + r * t.strides[0] + width);
    return out;
}

Result<> DeviceArrays::check_padding(const pb_tensor& t) {
    PB_TRY(const Floats spread, read_all(t, t.strides[0]));
    const int64_t width = row_width(t);
    for (int64_t r = 0; r < t.shape[0]; ++r)
        for (int64_t i = width; i < t.strides[0]; ++i)
            if (!std::isnan(spread[static_cast<size_t>(r * t.strides[0] + i)]))
                return fail("it wrote after row " + std::to_string(r) + " of a strided output");
    return {};
}

Result<> DeviceArrays::restore() {
    for (const Placed& p : placed_)
        PB_CHECK(component_.check(table().to_device(component_.self(), p.memory, p.bytes.data(), p.bytes.size()),
                                  "to_device"));
    return {};
}

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
