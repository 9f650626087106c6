// Attention with tensor cores, bf16, head_dim 64 or 128: a block works through the keys of a tile of up to 64 rows, a
// warp 16 rows of it; keys and values come through shared memory, the next block of them while this one is worked on.
#include <type_traits>

#include "cuda/attention.cuh"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kWarps = kTileRows / 16;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTiles = kKeys / 8; // of scores: 8 keys each

template <int D>
struct Buffers { // keys and values (kKeys, D), in chunks of 16 bytes that are spread over the banks
    static constexpr int kChunks = D / 8;                    // of a row
    static constexpr uint64_t kBytes = uint64_t{2} * kKeys * D * 2;  // of one stage
    static constexpr uint64_t kAll = 2 * kBytes;
    uint8_t* memory;
    __device__ uint8_t* at(int stage, bool values, int row, int chunk) const {
        return memory + stage * kBytes + (values ? kBytes / 2 : 0) + row * (D * 2) + ((chunk ^ (row & 7)) * 16);
    }
};

template <int D>
__device__ void load_keys(const AttentionCall& call, const AttentionItem& item, const int32_t* pages, int kv_head,
                          int block, Buffers<D> buffers, int stage) {
    constexpr int kChunks = Buffers<D>::kChunks;
    for (int i = int(threadIdx.x); i < kKeys * kChunks; i += kThreads) {
        const int row = i / kChunks, chunk = i % kChunks, key = block * kKeys + row;
        const Bf16* k = nullptr;
        const Bf16* v = nullptr;
        if (key < item.key_to) { // values past the end must be zero: their weight is, and 0 · NaN is NaN
            k = kv_row<Bf16>(call, pages, kv_head, key, false);
            v = kv_row<Bf16>(call, pages, kv_head, key, true);
        }
        copy_async(buffers.at(stage, false, row, chunk), k ? k + chunk * 8 : nullptr, call.kv.data);
        copy_async(buffers.at(stage, true, row, chunk), v ? v + chunk * 8 : nullptr, call.kv.data);
    }
    commit_copies();
}

template <int D>
struct RowSums { // of the two rows, lane / 4 and 8 more, of which a lane holds columns lane % 4 · 2 + {0, 1} of each 8
    float acc[D / 8][4];
    Sums state[2]; // l: of this lane's columns alone, until a split ends
    __device__ void clear() {
        for (int n = 0; n < D / 8; ++n)
            for (int i = 0; i < 4; ++i) acc[n][i] = 0.f;
        state[0] = state[1] = {-INFINITY, 0.f};
    }
};

// One block of keys: scores of the warp's 16 rows, their weights, and the values' sums.
template <int D>
__device__ void attend_block(const AttentionShape& shape, const uint32_t (&query)[D / 16][4], const RowPlace (&rows)[2],
                             int block, Buffers<D> buffers, int stage, RowSums<D>& sums) {
    const int lane = int(threadIdx.x) % kWarp;
    float scores[kTiles][4];
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
        for (int i = 0; i < 4; ++i) scores[n][i] = 0.f;
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int n = 0; n < kTiles; n += 2) { // 16 keys × 16 elements: b0 and b1 of two tiles
            uint32_t keys[4];
            const int key = n * 8 + (lane / 16) * 8 + lane % 8, chunk = d * 2 + (lane / 8) % 2;
            load_matrices(keys, buffers.at(stage, false, key, chunk));
            multiply_tile(scores[n], query[d], keys[0], keys[1]);
            multiply_tile(scores[n + 1], query[d], keys[2], keys[3]);
        }

    float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int key = block * kKeys + n * 8 + lane % 4 * 2 + i % 2;
            const RowPlace& row = rows[i / 2];
            const bool seen = key <= row.position && key >= row.first;
            scores[n][i] = seen ? score_of(shape, scores[n][i]) : -INFINITY;
            most[i / 2] = fmaxf(most[i / 2], scores[n][i]);
        }
    float keep[2], base[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) { // the four lanes of a row
        most[h] = fmaxf(most[h], shuffle_xor(most[h], 1));
        most[h] = fmaxf(most[h], shuffle_xor(most[h], 2));
        const float m = fmaxf(sums.state[h].m, most[h]);
        base[h] = base_of(m);
        keep[h] = exp2f(sums.state[h].m - base[h]);
        sums.state[h] = {m, sums.state[h].l * keep[h]};
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            scores[n][i] = exp2f(scores[n][i] - base[i / 2]);
            sums.state[i / 2].l += scores[n][i];
        }
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums.acc[n][i] *= keep[i / 2];
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
        const uint32_t weights[4] = {pack_bf16(scores[2 * k][0], scores[2 * k][1]),
                                     pack_bf16(scores[2 * k][2], scores[2 * k][3]),
                                     pack_bf16(scores[2 * k + 1][0], scores[2 * k + 1][1]),
                                     pack_bf16(scores[2 * k + 1][2], scores[2 * k + 1][3])};
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32_t values[4];
            const int key = k * 16 + (lane / 8) % 2 * 8 + lane % 8, chunk = n + lane / 16;
            load_matrices_transposed(values, buffers.at(stage, true, key, chunk));
            multiply_tile(sums.acc[n], weights, values[0], values[1]);
            multiply_tile(sums.acc[n + 1], weights, values[2], values[3]);
        }
    }
}

// Ends a split: its rows' l summed over the lanes, then kept as partial sums, or merged into `total`.
template <int D>
__device__ void end_split(const AttentionCall& call, const AttentionItem& item, int kv_head, int split, int first_row,
                          RowSums<D>& sums, RowSums<D>& total) {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        sums.state[h].l += shuffle_xor(sums.state[h].l, 1);
        sums.state[h].l += shuffle_xor(sums.state[h].l, 2);
        if (item.partial < 0) {
            const Shares share = shares_of(total.state[h].m, sums.state[h].m);
            total.state[h] = {share.m, merged(total.state[h].l, share.a, sums.state[h].l, share.b)};
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
#pragma unroll
                for (int i = 2 * h; i < 2 * h + 2; ++i)
                    total.acc[n][i] = merged(total.acc[n][i], share.a, sums.acc[n][i], share.b);
            continue;
        }
        const int r = first_row + lane / 4 + 8 * h;
        if (r >= item.rows) continue;
        const int64_t row = item.partial + int64_t{split} * item.rows + r;
        if (lane % 4 == 0) *state_at(call, row, kv_head) = sums.state[h];
        float* const to = sums_at(call, row, kv_head) + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
            to[n * 8] = sums.acc[n][2 * h];
            to[n * 8 + 1] = sums.acc[n][2 * h + 1];
        }
    }
    sums.clear();
}

template <int D>
__global__ void __launch_bounds__(kThreads, 2)
    attend_tiles_kernel(AttentionCall call, RowsOf<Bf16> out, RowsOf<const Bf16> q) {
    const int lane = int(threadIdx.x) % kWarp, first_row = int(threadIdx.x) / kWarp * 16;
    const int kv_heads = call.shape.kv_heads, heads = call.shape.heads, work = header_of(call).items * kv_heads;
    const Buffers<D> buffers{dynamic_shared()};
    for (int w = int(blockIdx.x); w < work; w += int(gridDim.x)) {
        const AttentionItem item = item_of(call, w / kv_heads);
        const int kv_head = w % kv_heads;
        const int32_t* const pages = call.blocks + call.block_starts[item.sequence];
        const int first_block = item.key_from / kKeys, end_block = (item.key_to + kKeys - 1) / kKeys;
        load_keys<D>(call, item, pages, kv_head, first_block, buffers, 0);

        RowPlace rows[2];
        uint32_t query[D / 16][4];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            rows[h] = place_of(call, item, kv_head, first_row + lane / 4 + 8 * h);
            const Bf16* const from = q.row(rows[h].token * heads + rows[h].head) + lane % 4 * 2;
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
#pragma unroll
                for (int half = 0; half < 2; ++half) // elements 0 … 7 and 8 … 15 of each 16
                    query[d][half * 2 + h] =
                        rows[h].position < 0 ? 0u
                                             : *reinterpret_cast<const uint32_t*>(from + d * 16 + half * 8);
        }
        const bool works = first_row < item.rows; // the others only load
        RowSums<D> sums, total;
        sums.clear();
        total.clear();
        int stage = 0, split = 0;
        for (int block = first_block; block < end_block; ++block, stage ^= 1) {
            if (block + 1 < end_block) {
                load_keys<D>(call, item, pages, kv_head, block + 1, buffers, stage ^ 1);
                wait_copies<1>();
            } else {
                wait_copies<0>();
            }
            __syncthreads(); // this block of keys is there, for all
            if (works) {
                attend_block<D>(call.shape, query, rows, block, buffers, stage, sums);
                if ((block + 1) % (kSplit / kKeys) == 0 || block + 1 == end_block)
                    end_split<D>(call, item, kv_head, split++, first_row, sums, total);
            }
            __syncthreads(); // all are done with it, before it is written over
        }
        if (!works || item.partial >= 0) continue;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if (rows[h].position < 0) continue;
            const Sums all = with_sink(call, rows[h].head, total.state[h]);
            Bf16* const to = out.row(rows[h].token * heads + rows[h].head) + lane % 4 * 2;
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<uint32_t*>(to + n * 8) =
                    pack_bf16(result_of(total.acc[n][2 * h], all), result_of(total.acc[n][2 * h + 1], all));
        }
    }
}

template <int D>
void start(Stream stream, const AttentionCall& call, const pb_tensor& out, const pb_tensor& q) {
    const auto rows = [](const pb_tensor& t, auto* data) {
        return RowsOf<std::remove_pointer_t<decltype(data)>>{data, t.strides[0], t.strides[1],
                                                             static_cast<int32_t>(t.shape[1])};
    };
    allow_shared(reinterpret_cast<const void*>(attend_tiles_kernel<D>), Buffers<D>::kAll);
    launch(attend_tiles_kernel<D>, call.grid, kThreads, Buffers<D>::kAll, stream, call,
           rows(out, static_cast<Bf16*>(out.data)), rows(q, static_cast<const Bf16*>(q.data)));
}

}  // namespace

void attend_tiles(Stream stream, const AttentionCall& call, const pb_tensor& out, const pb_tensor& q) {
    if (call.shape.head_dim == 64) start<64>(stream, call, out, q);
    else start<128>(stream, call, out, q);
}

uint32_t blocks_per_multiprocessor(const AttentionShape& shape, uint64_t shared_bytes) {
    const uint64_t block = (shape.head_dim == 128 ? Buffers<128>::kAll : Buffers<64>::kAll) + 1024; // the driver's own
    const uint64_t fit = shared_bytes / block;
    return static_cast<uint32_t>(fit < 1 ? 1 : fit > 2 ? 2 : fit); // their registers allow no third
}

}  // namespace patchbay::kernels::cuda
