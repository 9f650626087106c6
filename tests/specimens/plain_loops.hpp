// Every op that a device must have, as plain loops over f32 in host memory: the healthy device among the specimens, and
// whatever else a test builds on it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/tensor.hpp"

struct pb_weight { // as Loops prepares it
    int64_t rows, cols;
    std::vector<float> values, bias;
};

namespace specimens {

inline float* row(const pb_tensor& t, int64_t r) { return static_cast<float*>(t.data) + r * t.strides[0]; }
inline int32_t id(const pb_tensor& t, int64_t i) { return static_cast<const int32_t*>(t.data)[i]; }

inline void embedding(void*, const pb_tensor* out, const pb_weight* w, const pb_tensor* ids) {
    for (int64_t t = 0; t < out->shape[0]; ++t)
        std::memcpy(row(*out, t), &w->values[size_t(id(*ids, t) * w->cols)], size_t(w->cols) * 4);
}
inline void linear(void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* w) {
    for (int64_t t = 0; t < x->shape[0]; ++t)
        for (int64_t r = 0; r < w->rows; ++r) {
            double sum = w->bias.empty() ? 0 : w->bias[size_t(r)];
            for (int64_t c = 0; c < w->cols; ++c) sum += double{row(*x, t)[c]} * w->values[size_t(r * w->cols + c)];
            row(*out, t)[r] = float(sum);
        }
}
inline void norm_rows(const pb_tensor& out, const pb_tensor& x, const pb_weight& w, float eps) {
    const int64_t n = x.shape[x.rank - 1], heads = x.rank == 3 ? x.shape[1] : 1;
    for (int64_t t = 0; t < x.shape[0]; ++t)
        for (int64_t h = 0; h < heads; ++h) {
            const float* from = row(x, t) + h * n;
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += double{from[i]} * from[i];
            for (int64_t i = 0; i < n; ++i)
                (row(out, t) + h * n)[i] = float(from[i] / std::sqrt(sum / double(n) + eps) * w.values[size_t(i)]);
        }
}
inline void rms_norm(void*, const pb_tensor* out, const pb_tensor* x, const pb_weight* w, float eps) {
    norm_rows(*out, *x, *w, eps);
}
inline void add(void*, const pb_tensor* a, const pb_tensor* b) {
    for (int64_t t = 0; t < a->shape[0]; ++t)
        for (int64_t i = 0; i < a->shape[1]; ++i) row(*a, t)[i] += row(*b, t)[i];
}
inline void add_rms_norm(void* ctx, const pb_tensor* out, const pb_tensor* residual, const pb_tensor* x,
                         const pb_weight* w, float eps) {
    add(ctx, residual, x);
    norm_rows(*out, *residual, *w, eps);
}
// step: how far apart the two of a pair lie; between pairs 1, or 2 for neighbours.
inline void rotate(const pb_tensor& x, const pb_tensor& positions, const pb_weight& f, float scale,
                   int64_t step, int64_t pair) {
    for (int64_t t = 0; t < x.shape[0]; ++t)
        for (int64_t h = 0; h < x.shape[1]; ++h)
            for (int64_t i = 0; i < f.cols; ++i) {
                float *p = row(x, t) + h * x.shape[2] + i * pair, *q = p + step;
                const double angle = double{f.values[size_t(i)]} * id(positions, t), c = std::cos(angle) * scale,
                             s = std::sin(angle) * scale, a = *p, b = *q;
                *p = float(a * c - b * s);
                *q = float(b * c + a * s);
            }
}
inline void rope(void*, const pb_tensor* x, const pb_tensor* positions, const pb_weight* f, float scale) {
    rotate(*x, *positions, *f, scale, f->cols, 1);
}
inline void silu_mul(void*, const pb_tensor* out, const pb_tensor* in) {
    const int64_t n = out->shape[1];
    for (int64_t t = 0; t < out->shape[0]; ++t)
        for (int64_t i = 0; i < n; ++i)
            row(*out, t)[i] = float(row(*in, t)[i] / (1 + std::exp(-double{row(*in, t)[i]})) * row(*in, t)[n + i]);
}
inline void gather_rows(void*, const pb_tensor* out, const pb_tensor* x, const pb_tensor* rows) {
    for (int64_t t = 0; t < out->shape[0]; ++t)
        std::memcpy(row(*out, t), row(*x, id(*rows, t)), size_t(out->shape[1]) * 4);
}

class Loops {
  public:
    pb_device_info info() const {
        pb_device_info i = patchbay::sized<pb_device_info>();
        i.computes = i.host_memory = 1;
        i.memory_total = i.memory_free = 1 << 30;
        std::snprintf(i.name, sizeof i.name, "specimen");
        return i;
    }
    void* alloc(uint64_t bytes) {
        void* p = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
        return std::memset(p, 0, bytes);
    }
    void free(void* p) { std::free(p); }
    void to_device(void* to, const void* from, uint64_t n) { std::memcpy(to, from, n); }
    void to_host(void* to, const void* from, uint64_t n) { std::memcpy(to, from, n); }
    void copy_page(void* to, const void* from, uint64_t n) { std::memcpy(to, from, n); }
    pb_weight* prepare(const pb_weight_source& s) {
        if (s.role < PB_WEIGHT_LINEAR || s.role > PB_WEIGHT_VECTOR || s.rows < 1 || s.cols < 1)
            throw patchbay::Error(PB_INVALID, "no such weight");
        if (s.dtype != PB_F32 && s.dtype != PB_BF16) throw patchbay::Error(PB_UNSUPPORTED, "only f32 and bf16");
        const auto read = [&](const void* data, int64_t n) {
            std::vector<float> out;
            for (int64_t i = 0; data && i < n; ++i)
                out.push_back(s.dtype == PB_F32 ? static_cast<const float*>(data)[i]
                                                : patchbay::bf16_to_f32(static_cast<const uint16_t*>(data)[i]));
            return out;
        };
        return new pb_weight{s.rows, s.cols, read(s.data, s.rows * s.cols), read(s.bias, s.rows)};
    }
    void release(pb_weight* w) { delete w; }
    uint64_t weight_bytes(const pb_weight* w) const { return w->values.size() * 4; }
    const pb_ops* ops() const { return &ops_; }
    void begin_step() {}
    void end_step() {}

  protected:
    pb_ops ops_{sizeof(pb_ops), 0,    nullptr,  embedding, linear,      rms_norm,
                add_rms_norm,   rope, silu_mul, add,       gather_rows, nullptr};
};

}  // namespace specimens
