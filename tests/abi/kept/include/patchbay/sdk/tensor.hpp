// patchbay/sdk/tensor.hpp - small conveniences over pb_tensor: sizes, views, bf16.
#pragma once
#include <bit>
#include <cstdint>
#include <initializer_list>

#include "patchbay/abi/tensor.h"

namespace patchbay {

constexpr int64_t dtype_bytes(pb_dtype t) { // of one element; not of I4, two of which share a byte
    switch (t) {
        case PB_F32: case PB_I32: return 4;
        case PB_BF16: case PB_F16: return 2;
        case PB_I64: return 8;
        default: return 1;
    }
}

constexpr const char* dtype_name(pb_dtype t) {
    switch (t) {
        case PB_F32: return "f32";
        case PB_BF16: return "bf16";
        case PB_F16: return "f16";
        case PB_I32: return "i32";
        case PB_I64: return "i64";
        case PB_I8: return "i8";
        case PB_U8: return "u8";
        case PB_I4: return "i4";
        case PB_FP8: return "fp8";
        default: return "?";
    }
}

// A contiguous view.
constexpr pb_tensor tensor(void* data, pb_dtype dtype, std::initializer_list<int64_t> shape, int32_t device = 0) {
    pb_tensor t{data, dtype, static_cast<int32_t>(shape.size()), {1, 1, 1, 1}, {1, 1, 1, 1}, device, 0};
    int32_t i = 0;
    for (const int64_t n : shape) t.shape[i++] = n;
    int64_t stride = 1;
    for (i = t.rank - 1; i >= 0; --i) {
        t.strides[i] = stride;
        stride *= t.shape[i];
    }
    return t;
}

constexpr int64_t elements(const pb_tensor& t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t.rank; ++i) n *= t.shape[i];
    return n;
}

// Columns [from, from + count) of a (T, n) tensor, seen as (T, count).
inline pb_tensor columns(const pb_tensor& t, int64_t from, int64_t count) {
    pb_tensor out = t;
    out.data = t.data ? static_cast<char*>(t.data) + from * dtype_bytes(t.dtype) : nullptr;
    out.shape[1] = count;
    return out;
}

// Columns [from, from + count) of a (T, n) tensor, seen as (T, count / width, width).
inline pb_tensor columns(const pb_tensor& t, int64_t from, int64_t count, int64_t width) {
    pb_tensor out = t;
    out.data = t.data ? static_cast<char*>(t.data) + from * dtype_bytes(t.dtype) : nullptr;
    out.rank = 3;
    out.shape[1] = count / width;
    out.shape[2] = width;
    out.strides[1] = width;
    out.strides[2] = 1;
    return out;
}

// A contiguous (T, k, n) as (T · k, n).
constexpr pb_tensor each_row(pb_tensor t) {
    t.rank = 2;
    t.shape[0] *= t.shape[1];
    t.shape[1] = t.shape[2];
    t.shape[2] = 1;
    t.strides[0] = t.shape[1];
    t.strides[1] = t.strides[2] = 1;
    return t;
}

// (T, n) as (T, 1, n).
constexpr pb_tensor one_each(pb_tensor t) {
    t.rank = 3;
    t.shape[2] = t.shape[1];
    t.shape[1] = 1;
    t.strides[2] = 1;
    t.strides[1] = t.shape[2];
    return t;
}

// A contiguous (T, a, b) as (T, a · b).
constexpr pb_tensor flat(pb_tensor t) {
    t.rank = 2;
    t.shape[1] *= t.shape[2];
    t.shape[2] = 1;
    t.strides[1] = t.strides[2] = 1;
    return t;
}

constexpr float bf16_to_f32(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

// Round to nearest, ties to even; NaN stays NaN.
constexpr uint16_t f32_to_bf16(float f) {
    const uint32_t x = std::bit_cast<uint32_t>(f);
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

// e4m3: exponents 1 … 15 mean 2^−6 … 2^8, 0 means multiples of 2^−9; 0x7f and 0xff are NaN.
constexpr float fp8_to_f32(uint8_t x) {
    const uint32_t sign = static_cast<uint32_t>(x & 0x80u) << 24, low = x & 0x7fu;
    if (low == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
    const float subnormal = static_cast<float>(low) * 0x1p-9f;
    const uint32_t bits = low < 8 ? std::bit_cast<uint32_t>(subnormal) : (low << 20) + (120u << 23);
    return std::bit_cast<float>(sign | bits);
}

// Round to nearest, ties to even; what is beyond the greatest number, infinities too, becomes that; NaN stays NaN.
constexpr uint8_t f32_to_fp8(float f) {
    const uint32_t x = std::bit_cast<uint32_t>(f), sign = (x >> 24) & 0x80u, size = x & 0x7fffffffu;
    if (size > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
    if (size >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu); // 448
    if (size < 0x3c800000u) { // below 2^−6: adding 2^14, whose last place is 2^−9, rounds
        const float moved = std::bit_cast<float>(size) + 0x1p14f;
        return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(moved) - 0x46800000u));
    }
    const uint32_t rounded = size + 0x7ffffu + ((size >> 20) & 1u);
    return static_cast<uint8_t>(sign | ((rounded >> 20) - (120u << 3)));
}

}  // namespace patchbay
