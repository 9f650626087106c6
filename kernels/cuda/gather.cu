// Rows picked by index, and codes turned into the numbers they stand for. An index out of range gives zeros, and is
// reported.
#include "cuda/kernel.cuh"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <class To, class From>
__global__ void gather_kernel(RowsOf<To> out, RowsOf<const From> from, const int32_t* ids, int64_t count,
                              int64_t from_rows, int64_t n, int32_t* fault, KernelFault which) {
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        const int32_t id = ids[r];
        const bool there = id >= 0 && id < from_rows;
        if (!there && threadIdx.x == 0) *fault = static_cast<int32_t>(which);
        To* to = out.row(r);
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            to[i] = from_float<To>(there ? to_float(from.row(id)[i]) : 0.f);
    }
}

template <class To>
void gather(Stream stream, const pb_tensor& out, pb_dtype from_dtype, const void* from, int64_t stride,
            int64_t from_rows, const int32_t* ids, int32_t* fault, KernelFault which) {
    const int64_t count = out.shape[0], n = row_width(out);
    if (count == 0) return;
    with_type(from_dtype, [&](auto t) {
        using From = decltype(t);
        const RowsOf<const From> rows{static_cast<const From*>(from), stride, 0, 1};
        launch(gather_kernel<To, From>, blocks_for(count, 1), kThreads, 0, stream, rows_of<To>(out), rows, ids, count,
               from_rows, n, fault, which);
    });
}

__global__ void take_tokens_kernel(int32_t* ids, int64_t count, const int32_t* sampled, int64_t rows,
                                   int32_t* fault) {
    const int64_t t = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (t >= count || ids[t] >= 0) return;
    const int32_t row = ~ids[t];
    if (row >= rows) *fault = static_cast<int32_t>(KernelFault::kTakenToken);
    ids[t] = row < rows ? sampled[row] : 0;
}

__device__ inline float from_fp8(uint8_t code) { // e4m3, no NaN
    const int low = code & 0x7f, exponent = low >> 3;
    const float size = exponent == 0 ? float(low) * 0x1p-9f : ldexpf(float(8 + low % 8), exponent - 10);
    return code < 128 ? size : -size;
}

// Column c of the codes is column order[c] of what comes out.
template <class T>
__global__ void dequantise_kernel(T* out, Codes q) {
    const int64_t groups = (q.cols + q.group - 1) / q.group, step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < q.rows * q.cols; i += step) {
        const int64_t r = i / q.cols, c = i % q.cols, g = r * groups + c / q.group;
        float code;
        if (q.dtype == PB_FP8) {
            code = from_fp8(q.codes[i]);
        } else if (q.dtype == PB_I8) {
            code = static_cast<int8_t>(q.codes[i]);
        } else {
            const int nibble = q.codes[r * ((q.cols + 1) / 2) + c / 2] >> (c % 2 * 4) & 15;
            code = nibble < 8 ? nibble : nibble - 16;
        }
        const float value = code * q.scales[g] + (q.offsets ? q.offsets[g] : 0.f);
        out[r * q.cols + (q.order ? q.order[c] : c)] = from_float<T>(value);
    }
}

}  // namespace

void embedding(Stream stream, const pb_tensor& out, const DeviceMatrix& table, const int32_t* ids, int32_t* fault) {
    with_type(out.dtype, [&](auto t) {
        gather<decltype(t)>(stream, out, table.dtype, table.data, table.cols, table.rows, ids, fault,
                            KernelFault::kEmbeddingId);
    });
}

void gather_rows(Stream stream, const pb_tensor& out, const pb_tensor& x, const int32_t* rows, int32_t* fault) {
    with_type(out.dtype, [&](auto t) {
        gather<decltype(t)>(stream, out, x.dtype, x.data, x.strides[0], x.shape[0], rows, fault,
                            KernelFault::kGatherRow);
    });
}

void fill_placeholders(Stream stream, int32_t* ids, int64_t count, const int32_t* sampled, int64_t rows,
                       int32_t* fault) {
    if (count == 0) return;
    launch(take_tokens_kernel, static_cast<uint32_t>((count + kThreads - 1) / kThreads), kThreads, 0, stream, ids,
           count, sampled, rows, fault);
}

void dequantise(Stream stream, void* out, pb_dtype dtype, const Codes& codes) {
    with_type(dtype, [&](auto t) {
        using T = decltype(t);
        launch(dequantise_kernel<T>, blocks_for(codes.rows * codes.cols, kThreads), kThreads, 0, stream,
               static_cast<T*>(out), codes);
    });
}

}  // namespace patchbay::kernels::cuda
