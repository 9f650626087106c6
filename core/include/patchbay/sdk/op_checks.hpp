// patchbay/sdk/op_checks.hpp - what a device's op is given, checked against what it needs. Each function throws
// Mismatch, whose text ("x is f32 (3, 8), expected bf16 (3, 16)") becomes the step's fault.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>

#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

struct Mismatch {
    std::string text;
};

inline std::string shape_text(pb_dtype dtype, const int64_t* shape, int32_t rank) {
    std::string out = std::string(dtype_name(dtype)) + " (";
    for (int32_t i = 0; i < rank && i < PB_MAX_RANK; ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + ")";
}

inline void expect(const char* name, const pb_tensor& t, pb_dtype dtype, std::initializer_list<int64_t> shape) {
    const auto rank = static_cast<int32_t>(shape.size());
    const bool fits = t.dtype == dtype && t.rank == rank && std::equal(shape.begin(), shape.end(), t.shape);
    if (fits && t.strides[rank - 1] == 1 && (t.data || elements(t) == 0)) return;
    std::string got = shape_text(t.dtype, t.shape, t.rank);
    if (fits) got += t.data ? " with inner stride " + std::to_string(t.strides[rank - 1]) : " without data";
    throw Mismatch{std::string(name) + " is " + got + ", expected " + shape_text(dtype, shape.begin(), rank)};
}

inline void expect_rank(const char* name, const pb_tensor& t, int32_t least, int32_t most) {
    if (t.rank >= least && t.rank <= most) return;
    throw Mismatch{std::string(name) + " has rank " + std::to_string(t.rank) + ", expected " + std::to_string(least) +
                   (most > least ? " to " + std::to_string(most) : "")};
}

inline void expect_like(const char* name, const pb_tensor& t, const pb_tensor& model) {
    if (model.rank == 3) expect(name, t, model.dtype, {model.shape[0], model.shape[1], model.shape[2]});
    else expect(name, t, model.dtype, {model.shape[0], model.shape[1]});
}

// A tensor that gives an op its sizes, of rank 2 or 3.
inline void expect_activation(const char* name, const pb_tensor& t, pb_dtype dtype, int32_t least, int32_t most) {
    expect_rank(name, t, least, most);
    pb_tensor wanted = t;
    wanted.dtype = dtype;
    expect_like(name, t, wanted);
}

// i32 without gaps between rows
inline void expect_indices(const char* name, const pb_tensor& t, std::initializer_list<int64_t> shape) {
    expect(name, t, PB_I32, shape);
    if (t.rank == 2 && t.shape[0] > 1 && t.strides[0] != t.shape[1])
        throw Mismatch{std::string(name) + " is not contiguous"};
}

}  // namespace patchbay
