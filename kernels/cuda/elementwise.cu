// Ops on elements: of a row of n, a few for each thread, striding over what the grid does not cover.
#include "cuda/kernel.cuh"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline float silu(float x) { return x / (1.f + expf(-x)); }
__device__ inline float gelu(float x) { // x / 2 · (1 + tanh u), without its cancellation
    const float u = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    return x / (1.f + expf(-2.f * u));
}

__device__ inline float exact_gelu(float x) { return 0.5f * x * erfcf(-0.7071067811865476f * x); }

struct Silu {
    __device__ float operator()(float x) const { return silu(x); }
};
struct Gelu {
    __device__ float operator()(float x) const { return gelu(x); }
};
struct ExactGelu {
    __device__ float operator()(float x) const { return exact_gelu(x); }
};
struct Relu {
    __device__ float operator()(float x) const { return x < 0.f ? 0.f : x; } // NaN stays
};
struct Scale {
    float factor;
    __device__ float operator()(float x) const { return x * factor; }
};
struct SoftCap {
    float cap;
    __device__ float operator()(float x) const { return cap * tanhf(x / cap); }
};

// out (rows, n) = f(gate_up[:, :n]) · gate_up[:, n:]
template <class T, class F>
__global__ void gate_kernel(RowsOf<T> out, RowsOf<T> gate_up, int64_t rows, int64_t n, bool lined, F f) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x, each = (n + kEach - 1) / kEach;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * each; i += step) {
        const int64_t r = i / each, c = i % each * kEach;
        const T* in = gate_up.row(r) + c;
        const auto gate = read(in, n - c, lined), up = read(in + n, n - c, lined);
        Elements<T> gated;
#pragma unroll
        for (int j = 0; j < kEach; ++j)
            gated.values[j] = from_float<T>(f(to_float(gate.values[j])) * to_float(up.values[j]));
        write(out.row(r) + c, gated, n - c, lined);
    }
}

template <class T, class F>
__global__ void map_kernel(RowsOf<T> x, int64_t rows, int64_t n, F f) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += step) {
        T* at = x.row(i / n) + i % n;
        *at = from_float<T>(f(to_float(*at)));
    }
}

template <class T>
__global__ void add_kernel(RowsOf<T> a, RowsOf<T> b, int64_t rows, int64_t n) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += step) {
        T* at = a.row(i / n) + i % n;
        *at = from_float<T>(to_float(*at) + to_float(b.row(i / n)[i % n]));
    }
}

template <class T>
__global__ void swiglu_oai_kernel(RowsOf<T> out, RowsOf<T> gate_up, int64_t rows, int64_t n, float alpha, float limit) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += step) {
        const T* in = gate_up.row(i / n) + i % n;
        const float gate = to_float(in[0]), up = to_float(in[n]);
        const float g = gate > limit ? limit : gate; // NaN stays, here and below
        const float u = up > limit ? limit : up < -limit ? -limit : up;
        out.row(i / n)[i % n] = from_float<T>(g / (1.f + expf(-alpha * g)) * (u + 1.f));
    }
}

// x (rows, n) *= sigmoid(gate), gate (rows, gates): n or 1
template <class T>
__global__ void sigmoid_kernel(RowsOf<T> x, RowsOf<T> gate, int64_t rows, int64_t n, int64_t gates) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += step) {
        T* at = x.row(i / n) + i % n;
        *at = from_float<T>(to_float(*at) / (1.f + expf(-to_float(gate.row(i / n)[gates == 1 ? 0 : i % n]))));
    }
}

template <class T>
__global__ void bias_kernel(RowsOf<T> out, RowsOf<float> sums, const float* bias, int64_t rows, int64_t n) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += step)
        out.row(i / n)[i % n] = from_float<T>(sums.row(i / n)[i % n] + bias[i % n]);
}

__global__ void to_bf16_kernel(Bf16* out, RowsOf<float> x, int64_t rows, int64_t n) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += step)
        out[i] = from_float<Bf16>(x.row(i / n)[i % n]);
}

__global__ void widen_kernel(float* out, const Bf16* x, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) out[i] = to_float(x[i]);
}

// out (T, n) = Σ weights[t, j] · x[t, j], j ascending
template <class T>
__global__ void weighted_sum_kernel(RowsOf<T> out, RowsOf<T> x, RowsOf<float> weights, int64_t tokens, int64_t k,
                                    int64_t n) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < tokens * n; i += step) {
        const int64_t t = i / n, c = i % n;
        float sum = 0.f;
        for (int64_t j = 0; j < k; ++j) sum += weights.row(t)[j] * to_float(x.row(t * k + j)[c]);
        out.row(t)[c] = from_float<T>(sum);
    }
}

constexpr int kHeadsEach = 4; // that share their angles

template <class T>
__global__ void rope_kernel(T* x, int64_t token_stride, int64_t head_stride, const int32_t* positions,
                            const float* inv_freq, int64_t tokens, int64_t heads, int64_t half, float scale,
                            bool lined) {
    const int64_t each = (half + kEach - 1) / kEach, groups = (heads + kHeadsEach - 1) / kHeadsEach;
    const int64_t step = int64_t(gridDim.x) * blockDim.x, count = tokens * groups * each;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t pair = i % each * kEach, first = i / each % groups * kHeadsEach, t = i / (each * groups);
        float c[kEach], s[kEach];
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            // rounded to f32, as in training
            const float angle = pair + j < half ? float(positions[t]) * inv_freq[pair + j] : 0.f;
            c[j] = cosf(angle) * scale;
            s[j] = sinf(angle) * scale;
        }
        for (int64_t h = first; h < first + kHeadsEach && h < heads; ++h) {
            T* const row = x + t * token_stride + h * head_stride + pair;
            auto low = read(row, half - pair, lined), high = read(row + half, half - pair, lined);
#pragma unroll
            for (int j = 0; j < kEach; ++j) {
                const float a = to_float(low.values[j]), b = to_float(high.values[j]);
                low.values[j] = from_float<T>(a * c[j] - b * s[j]);
                high.values[j] = from_float<T>(b * c[j] + a * s[j]);
            }
            write(row, low, half - pair, lined);
            write(row + half, high, half - pair, lined);
        }
    }
}

template <class F>
void gate(Stream stream, const pb_tensor& out, const pb_tensor& gate_up, F f) {
    const int64_t rows = row_count(out), n = row_width(out);
    if (rows == 0) return;
    with_type(out.dtype, [&](auto t) {
        using T = decltype(t);
        launch(gate_kernel<T, F>, blocks_for(rows * parts(n), kThreads), kThreads, 0, stream, rows_of<T>(out),
               rows_of<T>(gate_up), rows, n, lined(out) && lined(gate_up) && n % kEach == 0, f);
    });
}

template <class F>
void map(Stream stream, const pb_tensor& x, F f) {
    const int64_t rows = row_count(x), n = row_width(x);
    if (rows == 0) return;
    with_type(x.dtype, [&](auto t) {
        using T = decltype(t);
        launch(map_kernel<T, F>, blocks_for(rows * n, kThreads), kThreads, 0, stream, rows_of<T>(x), rows, n, f);
    });
}

}  // namespace

void silu_mul(Stream stream, const pb_tensor& out, const pb_tensor& gate_up) { gate(stream, out, gate_up, Silu{}); }
void gelu_tanh_mul(Stream stream, const pb_tensor& out, const pb_tensor& gate_up) {
    gate(stream, out, gate_up, Gelu{});
}
void relu(Stream stream, const pb_tensor& x) { map(stream, x, Relu{}); }
void gelu_tanh(Stream stream, const pb_tensor& x) { map(stream, x, Gelu{}); }
void silu(Stream stream, const pb_tensor& x) { map(stream, x, Silu{}); }
void gelu_erf(Stream stream, const pb_tensor& x) { map(stream, x, ExactGelu{}); }
void gelu_erf_mul(Stream stream, const pb_tensor& out, const pb_tensor& gate_up) {
    gate(stream, out, gate_up, ExactGelu{});
}

void swiglu_oai(Stream stream, const pb_tensor& out, const pb_tensor& gate_up, float alpha, float limit) {
    const int64_t rows = row_count(out), n = row_width(out);
    if (rows == 0) return;
    with_type(out.dtype, [&](auto t) {
        using T = decltype(t);
        launch(swiglu_oai_kernel<T>, blocks_for(rows * n, kThreads), kThreads, 0, stream, rows_of<T>(out),
               rows_of<T>(gate_up), rows, n, alpha, limit);
    });
}

void sigmoid_mul(Stream stream, const pb_tensor& x, const pb_tensor& gate) {
    const int64_t rows = row_count(x), n = row_width(x), gates = row_width(gate);
    if (rows == 0) return;
    with_type(x.dtype, [&](auto t) {
        using T = decltype(t);
        launch(sigmoid_kernel<T>, blocks_for(rows * n, kThreads), kThreads, 0, stream, rows_of<T>(x), rows_of<T>(gate),
               rows, n, gates);
    });
}

void scale(Stream stream, const pb_tensor& x, float factor) { map(stream, x, Scale{factor}); }
void soft_cap(Stream stream, const pb_tensor& x, float cap) { map(stream, x, SoftCap{cap}); }

void add(Stream stream, const pb_tensor& a, const pb_tensor& b) {
    const int64_t rows = row_count(a), n = row_width(a);
    if (rows == 0) return;
    with_type(a.dtype, [&](auto t) {
        using T = decltype(t);
        launch(add_kernel<T>, blocks_for(rows * n, kThreads), kThreads, 0, stream, rows_of<T>(a), rows_of<T>(b), rows,
               n);
    });
}

void add_bias(Stream stream, const pb_tensor& out, const pb_tensor& sums, const float* bias) {
    const int64_t rows = row_count(out), n = row_width(out);
    if (rows == 0) return;
    with_type(out.dtype, [&](auto t) {
        using T = decltype(t);
        launch(bias_kernel<T>, blocks_for(rows * n, kThreads), kThreads, 0, stream, rows_of<T>(out),
               rows_of<float>(sums), bias, rows, n);
    });
}

void to_bf16(Stream stream, uint16_t* out, const pb_tensor& x) {
    const int64_t rows = row_count(x), n = row_width(x);
    if (rows == 0) return;
    launch(to_bf16_kernel, blocks_for(rows * n, kThreads), kThreads, 0, stream, reinterpret_cast<Bf16*>(out),
           rows_of<float>(x), rows, n);
}

void widen(Stream stream, float* out, const uint16_t* bf16, int64_t count) {
    launch(widen_kernel, blocks_for(count, kThreads), kThreads, 0, stream, out, reinterpret_cast<const Bf16*>(bf16),
           count);
}

void weighted_sum(Stream stream, const pb_tensor& out, const pb_tensor& x, const pb_tensor& weights) {
    const int64_t tokens = x.shape[0], k = x.shape[1], n = x.shape[2];
    if (tokens == 0) return;
    with_type(out.dtype, [&](auto t) {
        using T = decltype(t);
        launch(weighted_sum_kernel<T>, blocks_for(tokens * n, kThreads), kThreads, 0, stream, rows_of<T>(out),
               rows_of<T>(x), rows_of<float>(weights), tokens, k, n);
    });
}

void rope(Stream stream, const pb_tensor& x, const int32_t* positions, const float* inv_freq, int64_t half,
          float scale) {
    const int64_t tokens = x.shape[0], heads = x.shape[1];
    if (tokens * half == 0) return;
    with_type(x.dtype, [&](auto t) {
        using T = decltype(t);
        constexpr int kFewThreads = 64; // a thread has much to do: one token of 32 heads is for several blocks
        launch(rope_kernel<T>, blocks_for(tokens * ((heads + kHeadsEach - 1) / kHeadsEach) * parts(half), kFewThreads),
               kFewThreads, 0, stream, static_cast<T*>(x.data), x.strides[0], x.strides[1], positions, inv_freq, tokens,
               heads, half, scale, lined(x) && half % kEach == 0);
    });
}

}  // namespace patchbay::kernels::cuda
