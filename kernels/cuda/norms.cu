// Norms: a block a row. The sum over a row is a tree that follows from its width, so no row depends on another.
#include "cuda/kernel.cuh"

namespace patchbay::kernels::cuda {
namespace {

// out = x · factor · w, for the elements of a row that this thread has.
template <class T>
__device__ void scale_row(T* out, const T* x, const float* w, int32_t n, float factor, bool lined) {
    for (int c = int(threadIdx.x) * kEach; c < n; c += int(blockDim.x) * kEach) {
        const auto in = read(x + c, n - c, lined);
        const auto by = read(w + c, n - c, lined);
        Elements<T> to;
#pragma unroll
        for (int j = 0; j < kEach; ++j) to.values[j] = from_float<T>(to_float(in.values[j]) * factor * by.values[j]);
        write(out + c, to, n - c, lined);
    }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    rms_norm_kernel(RowsOf<T> out, RowsOf<T> x, const float* w, int64_t rows, int32_t n, float eps, bool lined) {
    __shared__ float shared[33];
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* in = x.row(r);
        float sum = 0.f;
        for (int c = int(threadIdx.x) * kEach; c < n; c += int(blockDim.x) * kEach) {
            const auto some = read(in + c, n - c, lined);
#pragma unroll
            for (int j = 0; j < kEach; ++j) sum += to_float(some.values[j]) * to_float(some.values[j]);
        }
        const float factor = 1.f / sqrtf(block_sum(sum, shared) / float(n) + eps);
        scale_row(out.row(r), in, w, n, factor, lined);
    }
}

// The sum is rounded to T before it is normed, as add and rms_norm would one after the other.
template <class T>
__global__ void __launch_bounds__(kRowThreads)
    add_rms_norm_kernel(RowsOf<T> out, RowsOf<T> residual, RowsOf<T> x, const float* w, int64_t rows, int32_t n,
                        float eps, bool lined) {
    __shared__ float shared[33];
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* in = x.row(r);
        T* kept = residual.row(r);
        float sum = 0.f;
        for (int c = int(threadIdx.x) * kEach; c < n; c += int(blockDim.x) * kEach) {
            const auto some = read(in + c, n - c, lined);
            auto both = read(kept + c, n - c, lined);
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                both.values[j] = from_float<T>(to_float(both.values[j]) + to_float(some.values[j]));
                sum += to_float(both.values[j]) * to_float(both.values[j]);
            }
            write(kept + c, both, n - c, lined);
        }
        const float factor = 1.f / sqrtf(block_sum(sum, shared) / float(n) + eps);
        scale_row(out.row(r), kept, w, n, factor, lined); // each thread reads what it wrote itself
    }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    layer_norm_kernel(RowsOf<T> out, RowsOf<T> x, const float* w, const float* b, int64_t rows, int32_t n, float eps) {
    __shared__ float shared[33];
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* in = x.row(r);
        T* to = out.row(r);
        float sum = 0.f;
        for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) sum += to_float(in[i]);
        const float mean = block_sum(sum, shared) / float(n);
        float squares = 0.f;
        for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) {
            const float v = to_float(in[i]) - mean;
            squares += v * v;
        }
        const float factor = 1.f / sqrtf(block_sum(squares, shared) / float(n) + eps);
        for (int i = int(threadIdx.x); i < n; i += int(blockDim.x))
            to[i] = from_float<T>((to_float(in[i]) - mean) * factor * w[i] + b[i]);
    }
}

}  // namespace

void rms_norm(Stream stream, const pb_tensor& out, const pb_tensor& x, const float* w, float eps) {
    const int64_t rows = row_count(x), n = row_width(x);
    if (rows == 0) return;
    with_type(x.dtype, [&](auto t) {
        using T = decltype(t);
        launch(rms_norm_kernel<T>, blocks_for(rows, 1), threads_for(n), 0, stream, rows_of<T>(out), rows_of<T>(x), w,
               rows, int32_t(n), eps, lined(out) && lined(x) && on_a_line(w));
    });
}

void add_rms_norm(Stream stream, const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x, const float* w,
                  float eps) {
    const int64_t rows = row_count(x), n = row_width(x);
    if (rows == 0) return;
    with_type(x.dtype, [&](auto t) {
        using T = decltype(t);
        launch(add_rms_norm_kernel<T>, blocks_for(rows, 1), threads_for(n), 0, stream, rows_of<T>(out),
               rows_of<T>(residual), rows_of<T>(x), w, rows, int32_t(n), eps,
               lined(out) && lined(residual) && lined(x) && on_a_line(w));
    });
}

void layer_norm(Stream stream, const pb_tensor& out, const pb_tensor& x, const float* w, const float* b, float eps) {
    const int64_t rows = row_count(x), n = row_width(x);
    if (rows == 0) return;
    with_type(x.dtype, [&](auto t) {
        using T = decltype(t);
        launch(layer_norm_kernel<T>, blocks_for(rows, 1), threads_for(n), 0, stream, rows_of<T>(out), rows_of<T>(x), w,
               b, rows, int32_t(n), eps);
    });
}

}  // namespace patchbay::kernels::cuda
