// Products of a matrix's row and a few vectors, one warp each, summed in one order over the columns: of any dtypes, and
// the same bits whatever else is computed. Fast where reading the matrix is what takes time. And the ops of mixtures of
// experts.
#include "cuda/kernel.cuh"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kWarps = 8; // of a block
constexpr int kReadThreads = 512;

// Sums of x[t] · w. On lines of 16 bytes elements are read together, else one by one: in the same order.
template <int kTokens, class X, class W>
__device__ inline void dots(float (&sums)[kTokens], const X* const (&x)[kTokens], const W* w, int64_t n) {
    const int64_t first = int64_t(threadIdx.x) % kWarp * kEach;
    bool lined = n % kEach == 0 && on_a_line(w);
    for (int t = 0; t < kTokens; ++t) {
        sums[t] = 0.f;
        lined = lined && on_a_line(x[t]);
    }
    if (lined) {
#pragma unroll 4
        for (int64_t i = first; i < n; i += kWarp * kEach) {
            const auto of_w = *reinterpret_cast<const Elements<W>*>(w + i);
#pragma unroll
            for (int t = 0; t < kTokens; ++t) {
                const auto of_x = *reinterpret_cast<const Elements<X>*>(x[t] + i);
#pragma unroll
                for (int j = 0; j < kEach; ++j)
                    sums[t] = fused_multiply_add(to_float(of_x.values[j]), to_float(of_w.values[j]), sums[t]);
            }
        }
    } else {
        for (int64_t i = first; i < n; i += kWarp * kEach)
            for (int j = 0; j < kEach && i + j < n; ++j)
                for (int t = 0; t < kTokens; ++t)
                    sums[t] = fused_multiply_add(to_float(x[t][i + j]), to_float(w[i + j]), sums[t]);
    }
    for (int t = 0; t < kTokens; ++t) sums[t] = warp_sum(sums[t]);
}

// A warp a row of w, for kTokens rows of x at a time.
template <int kTokens, class X, class W, class Out>
__global__ void linear_kernel(RowsOf<Out> out, RowsOf<X> x, const W* w, const float* bias, int64_t tokens, int64_t rows,
                              int64_t cols) {
    const int64_t step = int64_t(gridDim.x) * kWarps, work = tokens / kTokens * rows;
    for (int64_t i = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp; i < work; i += step) {
        const int64_t t = i / rows * kTokens, r = i % rows;
        const X* of_tokens[kTokens];
        for (int j = 0; j < kTokens; ++j) of_tokens[j] = x.row(t + j);
        float sums[kTokens];
        dots(sums, of_tokens, w + r * cols, cols);
        if (threadIdx.x % kWarp == 0)
            for (int j = 0; j < kTokens; ++j) out.row(t + j)[r] = from_float<Out>(sums[j] + (bias ? bias[r] : 0.f));
    }
}

// x (T, k, cols), or (T, 1, cols) for all j alike: `alike` 1
template <class X, class W>
__global__ void expert_kernel(RowsOf<X> out, RowsOf<X> x, const DeviceMatrix* experts, int32_t count,
                              const int32_t* ids, int32_t* fault, int64_t tokens, int64_t k, int64_t rows, int64_t cols,
                              int32_t alike) {
    const int64_t step = int64_t(gridDim.x) * kWarps;
    for (int64_t i = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp; i < tokens * k * rows; i += step) {
        const int64_t pair = i / rows, r = i % rows;
        const int32_t id = ids[pair];
        float sum = 0.f;
        if (id >= 0 && id < count) {
            const DeviceMatrix& e = experts[id];
            const X* const of_token[1] = {x.row(alike ? pair / k : pair)};
            float sums[1];
            dots(sums, of_token, static_cast<const W*>(e.data) + r * cols, cols);
            sum = sums[0] + (e.bias ? e.bias[r] : 0.f);
        } else if (threadIdx.x % kWarp == 0) {
            *fault = static_cast<int32_t>(KernelFault::kExpertId);
        }
        if (threadIdx.x % kWarp == 0) out.row(pair)[r] = from_float<X>(sum);
    }
}

// A warp a row: k times the greatest of those that come after the last in order of (value, lower index).
template <class T>
__global__ void top_k_kernel(RowsOf<int32_t> ids, RowsOf<float> weights, RowsOf<T> logits, int64_t rows, int32_t k,
                             int32_t n, int32_t sum_to_one) {
    const int lane = int(threadIdx.x);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* x = logits.row(r);
        float last = INFINITY, max_logit = 0.f, chosen = 0.f;
        int last_index = -1;
        for (int j = 0; j < k; ++j) {
            float best = -INFINITY;
            int best_index = n;
            for (int i = lane; i < n; i += kWarp) {
                const float v = to_float(x[i]);
                const bool after = v < last || (v == last && i > last_index);
                if (after && (v > best || best_index == n)) best = v, best_index = i; // ascending: the lower of equals
            }
            for (int offset = kWarp / 2; offset > 0; offset /= 2) {
                const float v = shuffle_xor(best, offset);
                const int i = shuffle_xor(best_index, offset);
                if (i < n && (best_index == n || v > best || (v == best && i < best_index))) best = v, best_index = i;
            }
            if (best_index == n) best_index = 0, best = -INFINITY; // NaN alone is left
            if (j == 0) max_logit = best;
            last = best;
            last_index = best_index;
            const float weight = expf(best - max_logit);
            chosen += weight;
            if (lane == 0) {
                ids.row(r)[j] = best_index;
                weights.row(r)[j] = weight;
            }
        }
        float all = 0.f;
        for (int i = lane; i < n; i += kWarp) all += expf(to_float(x[i]) - max_logit);
        const float total = sum_to_one ? chosen : warp_sum(all);
        if (lane == 0)
            for (int j = 0; j < k; ++j) weights.row(r)[j] /= total;
    }
}

__global__ void __launch_bounds__(kReadThreads) read_kernel(float* out, const float4* data, int64_t count) {
    float sum = 0.f;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const float4 v = data[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1234.5f) *out = sum; // never of zeros: only so that nothing is left out
}

}  // namespace

void plain_linear(Stream stream, const pb_tensor& out, const pb_tensor& x, const DeviceMatrix& w) {
    const int64_t tokens = x.shape[0];
    if (tokens == 0) return;
    with_type(x.dtype, [&](auto tx) {
        with_type(w.dtype, [&](auto tw) {
            with_type(out.dtype, [&](auto to) {
                using X = decltype(tx);
                using W = decltype(tw);
                using Out = decltype(to);
                const auto by = [&](auto* kernel, int64_t at_a_time) {
                    launch(kernel, blocks_for(tokens / at_a_time * w.rows, kWarps), kWarps * kWarp, 0, stream,
                           rows_of<Out>(out), rows_of<X>(x), static_cast<const W*>(w.data), w.bias, tokens, w.rows,
                           w.cols);
                };
                if (tokens % 4 == 0) by(linear_kernel<4, X, W, Out>, 4);
                else if (tokens % 2 == 0) by(linear_kernel<2, X, W, Out>, 2);
                else by(linear_kernel<1, X, W, Out>, 1);
            });
        });
    });
}

void expert_linear(Stream stream, const pb_tensor& out, const pb_tensor& x, const ExpertTable& experts,
                   const int32_t* ids, int32_t* fault) {
    const int64_t tokens = out.shape[0], k = out.shape[1];
    if (tokens == 0) return;
    with_type(x.dtype, [&](auto tx) {
        with_type(experts.dtype, [&](auto tw) {
            using X = decltype(tx);
            using W = decltype(tw);
            launch(expert_kernel<X, W>, blocks_for(tokens * k * experts.rows, kWarps), kWarps * kWarp, 0, stream,
                   rows_of<X>(out), rows_of<X>(x), experts.matrices, int32_t(experts.count), ids, fault, tokens, k,
                   experts.rows, experts.cols, int32_t(x.shape[1] == 1 && k > 1));
        });
    });
}

void top_k(Stream stream, const pb_tensor& ids, const pb_tensor& weights, const pb_tensor& logits, bool sum_to_one) {
    const int64_t rows = logits.shape[0];
    if (rows == 0) return;
    with_type(logits.dtype, [&](auto t) {
        using T = decltype(t);
        launch(top_k_kernel<T>, blocks_for(rows, 1), kWarp, 0, stream, rows_of<int32_t>(ids), rows_of<float>(weights),
               rows_of<T>(logits), rows, int32_t(weights.shape[1]), int32_t(logits.shape[1]), int32_t(sum_to_one));
    });
}

void read_all(Stream stream, float* out, const void* data, int64_t bytes) {
    launch(read_kernel, 2048, kReadThreads, 0, stream, out, static_cast<const float4*>(data), bytes / 16);
}

}  // namespace patchbay::kernels::cuda
