#include "checks.hpp"

#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

std::string shape_text(const pb_tensor& t) {
    std::string out = std::string(dtype_name(t.dtype)) + " (";
    for (int32_t i = 0; i < t.rank && i < PB_MAX_RANK; ++i) out += (i ? ", " : "") + std::to_string(t.shape[i]);
    return out + ")";
}

}  // namespace

void expect(const char* name, const pb_tensor& t, pb_dtype dtype, std::initializer_list<int64_t> shape) {
    bool fits = t.dtype == dtype && t.rank == static_cast<int32_t>(shape.size());
    int64_t count = 1;
    for (size_t i = 0; fits && i < shape.size(); ++i) {
        fits = t.shape[i] == shape.begin()[i];
        count *= t.shape[i];
    }
    if (fits && t.strides[t.rank - 1] == 1 && (t.data || count == 0)) return;
    std::string wanted = std::string(dtype_name(dtype)) + " (";
    for (size_t i = 0; i < shape.size(); ++i) wanted += (i ? ", " : "") + std::to_string(shape.begin()[i]);
    std::string got = shape_text(t);
    if (fits) got += t.data ? " with inner stride " + std::to_string(t.strides[t.rank - 1]) : " without data";
    throw Mismatch{std::string(name) + " is " + got + ", expected " + wanted + ")"};
}

void expect_rank(const char* name, const pb_tensor& t, int32_t least, int32_t most) {
    if (t.rank >= least && t.rank <= most) return;
    throw Mismatch{std::string(name) + " has rank " + std::to_string(t.rank) + ", expected " + std::to_string(least) +
                   (most > least ? " to " + std::to_string(most) : "")};
}

// For tensors that give an op its sizes.
void expect_f32(const char* name, const pb_tensor& t, int32_t least_rank, int32_t most_rank) {
    expect_rank(name, t, least_rank, most_rank);
    if (t.rank == 3) expect(name, t, PB_F32, {t.shape[0], t.shape[1], t.shape[2]});
    else expect(name, t, PB_F32, {t.shape[0], t.shape[1]});
}

void expect_like(const char* name, const pb_tensor& t, const pb_tensor& model) {
    if (model.rank == 3) expect(name, t, PB_F32, {model.shape[0], model.shape[1], model.shape[2]});
    else expect(name, t, PB_F32, {model.shape[0], model.shape[1]});
}

const kernels::PackedMatrix& matrix_of(const pb_weight* w, pb_weight_role role, const char* role_name) {
    if (!w || !w->matrix || !(w->uses & uint64_t{1} << role))
        throw Mismatch{std::string("the weight was not prepared for ") + role_name};
    return *w->matrix;
}

const float* vector_of(const pb_weight* w, const char* name, int64_t size) {
    if (!w || w->vector.empty()) throw Mismatch{std::string(name) + " was not prepared as a vector"};
    if (static_cast<int64_t>(w->vector.size()) != size)
        throw Mismatch{std::string(name) + " has " + std::to_string(w->vector.size()) + " values, expected " +
                       std::to_string(size)};
    return w->vector.data();
}

const int32_t* indices(const char* name, const pb_tensor& t, std::initializer_list<int64_t> shape, int64_t limit) {
    expect(name, t, PB_I32, shape);
    const int64_t count = elements(t);
    if (t.rank == 2 && t.shape[0] > 1 && t.strides[0] != t.shape[1])
        throw Mismatch{std::string(name) + " is not contiguous"};
    const auto* data = static_cast<const int32_t*>(t.data);
    for (int64_t i = 0; i < count; ++i)
        if (data[i] < 0 || data[i] >= limit)
            throw Mismatch{std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(data[i]) +
                           ", expected 0 to " + std::to_string(limit - 1)};
    return data;
}

}  // namespace patchbay
