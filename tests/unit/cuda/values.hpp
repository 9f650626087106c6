// Tensors of F32 or BF16 with padding after each row, in memory that tests and kernels reach.
#pragma once
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "patchbay/sdk/tensor.hpp"
#include "shared_memory.hpp"

namespace patchbay::kernels::cuda {

template <class T>
using Shared = std::vector<T, SharedAllocator<T>>;
using Floats = Shared<float>;
using Ints = Shared<int32_t>;

inline Floats noise(uint64_t seed, size_t count, float low = -2, float high = 2) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<float> draw(low, high);
    Floats out(count);
    for (float& x : out) x = draw(engine);
    return out;
}

inline float rounded(pb_dtype dtype, float x) { return dtype == PB_BF16 ? bf16_to_f32(f32_to_bf16(x)) : x; }
inline Floats rounded(pb_dtype dtype, Floats values) {
    for (float& x : values) x = rounded(dtype, x);
    return values;
}

// (rows, width), seen as what shape says. The padding after a row stays NaN.
class Values {
  public:
    Values(pb_dtype dtype, std::vector<int64_t> shape, const Floats& values = {}, int64_t padding = 8)
        : dtype_(dtype), shape_(std::move(shape)) {
        for (size_t i = 1; i < shape_.size(); ++i) width_ *= shape_[i];
        stride_ = width_ + padding;
        bytes_.assign(size_t(shape_[0] * stride_ * dtype_bytes(dtype)) / 16 + 1, {~0ull, ~0ull}); // NaN in both dtypes
        for (size_t i = 0; i < values.size(); ++i)
            write(int64_t(i) / width_ * stride_ + int64_t(i) % width_, values[i]);
    }
    pb_tensor tensor() {
        pb_tensor t = patchbay::tensor(bytes_.data(), dtype_, {});
        t.rank = int32_t(shape_.size());
        int64_t stride = 1;
        for (int i = t.rank - 1; i >= 0; --i) {
            t.shape[i] = shape_[size_t(i)];
            t.strides[i] = i == 0 && t.rank > 1 ? stride_ : stride;
            stride *= shape_[size_t(i)];
        }
        return t;
    }
    Floats dense() const {
        finish();
        Floats out;
        for (int64_t r = 0; r < shape_[0]; ++r)
            for (int64_t i = 0; i < width_; ++i) out.push_back(read(r * stride_ + i));
        return out;
    }
    bool padding_is_untouched() const {
        finish();
        for (int64_t r = 0; r < shape_[0]; ++r)
            for (int64_t i = width_; i < stride_; ++i)
                if (!std::isnan(read(r * stride_ + i))) return false;
        return true;
    }
    const void* data() const { return bytes_.data(); }

  private:
    struct alignas(16) Line {
        uint64_t low, high;
    };
    void write(int64_t at, float value) {
        uint8_t* const to = reinterpret_cast<uint8_t*>(bytes_.data()) + at * dtype_bytes(dtype_);
        const uint16_t half = f32_to_bf16(value);
        if (dtype_ == PB_BF16) std::memcpy(to, &half, 2);
        else std::memcpy(to, &value, 4);
    }
    float read(int64_t at) const {
        const uint8_t* const from = reinterpret_cast<const uint8_t*>(bytes_.data()) + at * dtype_bytes(dtype_);
        float value;
        uint16_t half;
        if (dtype_ == PB_BF16) return std::memcpy(&half, from, 2), bf16_to_f32(half);
        return std::memcpy(&value, from, 4), value;
    }

    pb_dtype dtype_;
    std::vector<int64_t> shape_;
    int64_t width_ = 1, stride_ = 1;
    Shared<Line> bytes_;
};

}  // namespace patchbay::kernels::cuda
