// What is left to do around the exchange of ranks: sums in the order of ranks, and rows side by side.
#include "cuda/kernel.cuh"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// out (count) = Σ gathered (ranks, count), rank 0 first, in f32
template <class T>
__global__ void sum_kernel(T* out, const T* gathered, int32_t ranks, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        float sum = 0.f;
        for (int32_t r = 0; r < ranks; ++r) sum += to_float(gathered[r * count + i]);
        out[i] = from_float<T>(sum);
    }
}

// out (rows, ranks · n) from gathered (ranks, rows, n)
template <class T>
__global__ void lay_kernel(T* out, const T* gathered, int32_t ranks, int64_t rows, int64_t n) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < ranks * rows * n; i += step) {
        const int64_t rank = i / (rows * n), row = i / n % rows, column = i % n;
        out[(row * ranks + rank) * n + column] = gathered[i];
    }
}

}  // namespace

void sum_ranks(Stream stream, const pb_tensor& out, const void* gathered, uint32_t ranks) {
    const int64_t count = out.shape[0] * out.shape[1];
    with_type(out.dtype, [&](auto t) {
        using T = decltype(t);
        launch(sum_kernel<T>, blocks_for(count, kThreads), kThreads, 0, stream, static_cast<T*>(out.data),
               static_cast<const T*>(gathered), int32_t(ranks), count);
    });
}

void lay_side_by_side(Stream stream, const pb_tensor& out, const void* gathered, uint32_t ranks) {
    const int64_t rows = out.shape[0], n = out.shape[1] / ranks;
    with_type(out.dtype, [&](auto t) {
        using T = decltype(t);
        launch(lay_kernel<T>, blocks_for(rows * n * ranks, kThreads), kThreads, 0, stream, static_cast<T*>(out.data),
               static_cast<const T*>(gathered), int32_t(ranks), rows, n);
    });
}

}  // namespace patchbay::kernels::cuda
