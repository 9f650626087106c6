// Norms: a block a row. The sum over a row is a tree that follows from its width, so no row depends on another.
#include "cuda/kernel.cuh"

namespace patchbay::kernels::cuda {
namespace {

template <class T>
__global__ void rms_norm_kernel(RowsOf<T> out, RowsOf<T> x, const float* w, int64_t rows, int32_t n, float eps) {
    __shared__ float shared[33];
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* in = x.row(r);
        T* to = out.row(r);
        float sum = 0.f;
        for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) {
            const float v = to_float(in[i]);
            sum += v * v;
        }
        const float factor = 1.f / sqrtf(block_sum(sum, shared) / float(n) + eps);
        for (int i = int(threadIdx.x); i < n; i += int(blockDim.x))
            to[i] = from_float<T>(to_float(in[i]) * factor * w[i]);
    }
}

// The sum is rounded to T before it is normed, as add and rms_norm would one after the other.
template <class T>
__global__ void add_rms_norm_kernel(RowsOf<T> out, RowsOf<T> residual, RowsOf<T> x, const float* w, int64_t rows,
                                    int32_t n, float eps) {
    __shared__ float shared[33];
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* in = x.row(r);
        T* kept = residual.row(r);
        T* to = out.row(r);
        float sum = 0.f;
        for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) {
            kept[i] = from_float<T>(to_float(kept[i]) + to_float(in[i]));
            const float v = to_float(kept[i]);
            sum += v * v;
        }
        const float factor = 1.f / sqrtf(block_sum(sum, shared) / float(n) + eps);
        for (int i = int(threadIdx.x); i < n; i += int(blockDim.x))
            to[i] = from_float<T>(to_float(kept[i]) * factor * w[i]); // each thread reads what it wrote itself
    }
}

template <class T>
__global__ void layer_norm_kernel(RowsOf<T> out, RowsOf<T> x, const float* w, const float* b, int64_t rows, int32_t n,
                                  float eps) {
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
               rows, int32_t(n), eps);
    });
}

void add_rms_norm(Stream stream, const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x, const float* w,
                  float eps) {
    const int64_t rows = row_count(x), n = row_width(x);
    if (rows == 0) return;
    with_type(x.dtype, [&](auto t) {
        using T = decltype(t);
        launch(add_rms_norm_kernel<T>, blocks_for(rows, 1), threads_for(n), 0, stream, rows_of<T>(out),
               rows_of<T>(residual), rows_of<T>(x), w, rows, int32_t(n), eps);
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
