// Attention with tensor cores, bf16, head_dim 64 or 128. Of a tile of up to 64 rows, a block of threads works through
// the keys, a warp 16 rows of it. Of few rows, as sequences that decode have, each warp works alone, so that many
// sequences are read at once. Keys and values come through shared memory, the next of them while those before are
// worked on.
#include <cstdint>
#include <type_traits>

#include "cuda/attention.cuh"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kWarps = kTileRows / 16;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTiles = kKeys / 8; // of scores: 8 keys each
constexpr int kStages = 2;        // of keys and values that a tile's block has room for
constexpr int kMaxFewWarps = 8;   // of a block of attend_few_kernel: their registers allow no more

template <int D>
struct Buffers { // keys and values (kKeys, D), in chunks of 16 bytes that are spread over the banks
    static constexpr int kChunks = D / 8;                           // of a row
    static constexpr uint64_t kBytes = uint64_t{2} * kKeys * D * 2; // of one stage
    uint8_t* memory;
    __device__ uint8_t* at(int stage, bool values, int row, int chunk) const {
        return memory + stage * kBytes + (values ? kBytes / 2 : 0) + row * (D * 2) + ((chunk ^ (row & 7)) * 16);
    }
};

// Where one KV head of a sequence lies in its pages.
template <int D>
struct HeadPages {
    const int32_t* pages;
    const uint8_t* data;
    uint64_t page_stride, values; // bytes: from a page to the next, from a key to its value
    int32_t block_size, shift;    // shift: block_size is 2^shift; −1: it is no power of 2
    __device__ HeadPages(const AttentionCall& call, const AttentionItem& item, int kv_head)
        : pages(call.blocks + call.block_starts[item.sequence]),
          data(call.kv.data + uint64_t(kv_head) * uint64_t(call.shape.block_size) * (D * 2)),
          page_stride(call.kv.page_stride),
          values(uint64_t(call.shape.kv_heads) * uint64_t(call.shape.block_size) * (D * 2)),
          block_size(call.shape.block_size),
          shift((block_size & (block_size - 1)) == 0 ? 31 - leading_zeros(uint32_t(block_size)) : -1) {}
    struct Row {
        const uint8_t* at; // of a key; its value is `values` bytes further
        bool there;        // its page has not been freed
    };
    template <bool kPowerOfTwo>
    __device__ Row row(int key) const {
        const int index = kPowerOfTwo ? key >> shift : key / block_size;
        const int offset = kPowerOfTwo ? key & (block_size - 1) : key - index * block_size;
        const int32_t page = pages[index];
        return {data + uint64_t(page < 0 ? 0 : page) * page_stride + offset * (D * 2), page >= 0};
    }
};

// Begins to copy keys, or values, of one block: by `kBy` threads, of which this is `thread`. What comes after the last
// key is zero: its weight is, and 0 · NaN is NaN.
template <int D, int kBy>
__device__ void load_rows(const HeadPages<D>& head, int key_to, int block, bool values, int thread, Buffers<D> buffers,
                          int stage) {
    constexpr int kChunks = Buffers<D>::kChunks, kRows = kBy / kChunks;
    const int chunk = thread % kChunks;
    const uint64_t ahead = (values ? head.values : 0) + uint64_t(chunk) * 16;
    const auto load = [&](auto power_of_two, int row) {
        const int key = block * kKeys + row;
        const auto from = head.template row<decltype(power_of_two)::value>(key < key_to ? key : key_to - 1);
        copy_async(buffers.at(stage, values, row, chunk), from.at + ahead, from.there && key < key_to);
    };
    if (head.shift >= 0) {
#pragma unroll 8
        for (int row = thread / kChunks; row < kKeys; row += kRows) load(std::true_type{}, row);
    } else {
#pragma unroll 1
        for (int row = thread / kChunks; row < kKeys; row += kRows) load(std::false_type{}, row);
    }
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

// Which keys a lane's two rows see, and from which block to which all rows of the warp see all keys.
struct Sight {
    RowPlace rows[2];
    int whole_from, whole_end; // blocks [whole_from, whole_end)
};

__device__ Sight sight_of(const AttentionCall& call, const AttentionItem& item, int kv_head, int first_row) {
    const int lane = int(threadIdx.x) % kWarp;
    Sight out{};
    int min_position = INT32_MAX, max_position = 0; // of positions, and of the first keys seen
    for (int h = 0; h < 2; ++h) {
        const RowPlace& row = out.rows[h] = place_of(call, item, kv_head, first_row + lane / 4 + 8 * h);
        if (row.position < 0) continue; // its query is zero, and nothing is written
        min_position = row.position < min_position ? row.position : min_position;
        max_position = row.first > max_position ? row.first : max_position;
    }
    for (int mask = 4; mask < kWarp; mask *= 2) {
        const int other_min = shuffle_xor(min_position, mask), other_max = shuffle_xor(max_position, mask);
        min_position = other_min < min_position ? other_min : min_position;
        max_position = other_max > max_position ? other_max : max_position;
    }
    out.whole_from = (max_position + kKeys - 1) / kKeys;
    out.whole_end = min_position == INT32_MAX ? 0 : (min_position + 1) / kKeys;
    return out;
}

template <int D>
using Query = uint32_t[D / 16][4]; // of a warp's 16 rows, as multiply_tile() takes them

template <int D>
__device__ void load_query(Query<D>& query, const RowsOf<const Bf16>& q, const RowPlace (&rows)[2], int heads) {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const Bf16* const from = q.row(rows[h].token * heads + rows[h].head) + lane % 4 * 2;
#pragma unroll
        for (int d = 0; d < D / 16; ++d)
#pragma unroll
            for (int half = 0; half < 2; ++half) // elements 0 … 7 and 8 … 15 of each 16
                query[d][half * 2 + h] =
                    rows[h].position < 0 ? 0u : *reinterpret_cast<const uint32_t*>(from + d * 16 + half * 8);
    }
}

using Scores = float[kTiles][4]; // of 16 rows and kKeys keys: of a lane's two rows, columns as in RowSums

// q · k of one block of keys.
template <int D>
__device__ void multiply_keys(Scores& scores, const Query<D>& query, Buffers<D> buffers, int stage) {
    const int lane = int(threadIdx.x) % kWarp;
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
}

// Scores become weights; the sums so far are scaled to the greatest score with them.
template <int D, bool kCapped>
__device__ void weigh(Scores& scores, const AttentionShape& shape, const Sight& sight, int block, RowSums<D>& sums) {
    const int lane = int(threadIdx.x) % kWarp;
    float max_score[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            scores[n][i] = kCapped ? score_of(shape, scores[n][i]) : uncapped_score_of(shape, scores[n][i]);
    if (block < sight.whole_from || block >= sight.whole_end) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int key = block * kKeys + n * 8 + lane % 4 * 2 + i % 2;
                const RowPlace& row = sight.rows[i / 2];
                if (key > row.position || key < row.first) scores[n][i] = -INFINITY;
            }
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) max_score[i / 2] = fmaxf(max_score[i / 2], scores[n][i]);
    float keep[2], base[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) { // the four lanes of a row
        max_score[h] = fmaxf(max_score[h], shuffle_xor(max_score[h], 1));
        max_score[h] = fmaxf(max_score[h], shuffle_xor(max_score[h], 2));
        const float m = fmaxf(sums.state[h].m, max_score[h]);
        base[h] = base_of(m);
        keep[h] = power_of_two(sums.state[h].m - base[h]);
        sums.state[h] = {m, sums.state[h].l * keep[h]};
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            scores[n][i] = power_of_two(scores[n][i] - base[i / 2]);
            sums.state[i / 2].l += scores[n][i];
        }
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums.acc[n][i] *= keep[i / 2];
}

// Adds the values of one block of keys by their weights.
template <int D>
__device__ void add_values(const Scores& scores, Buffers<D> buffers, int stage, RowSums<D>& sums) {
    const int lane = int(threadIdx.x) % kWarp;
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

__device__ inline bool ends_split(int block, int end_block) {
    return (block + 1) % (kSplit / kKeys) == 0 || block + 1 == end_block;
}

// Results of rows whose keys are all in `total`.
template <int D>
__device__ void write_rows(const AttentionCall& call, const RowPlace (&rows)[2], const RowSums<D>& total,
                           const RowsOf<Bf16>& out) {
    const int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (rows[h].position < 0) continue;
        const Sums all = with_sink(call, rows[h].head, total.state[h]);
        Bf16* const to = out.row(rows[h].token * call.shape.heads + rows[h].head) + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<uint32_t*>(to + n * 8) =
                pack_bf16(result_of(total.acc[n][2 * h], all), result_of(total.acc[n][2 * h + 1], all));
    }
}

template <int D, bool kCapped>
__global__ void __launch_bounds__(kThreads, 2)
    attend_tiles_kernel(AttentionCall call, RowsOf<Bf16> out, RowsOf<const Bf16> q) {
    const int thread = int(threadIdx.x), first_row = thread / kWarp * 16;
    const int kv_heads = call.shape.kv_heads, work = header_of(call).tiles * kv_heads;
    const Buffers<D> buffers{dynamic_shared()};
    for (int w = int(blockIdx.x); w < work; w += int(gridDim.x)) {
        const AttentionItem item = item_of(call, w / kv_heads);
        const int kv_head = w % kv_heads;
        const HeadPages<D> head(call, item, kv_head);
        const int first_block = item.key_from / kKeys, end_block = (item.key_to + kKeys - 1) / kKeys;
        const auto load = [&](int block, int stage) {
            load_rows<D, kThreads>(head, item.key_to, block, false, thread, buffers, stage);
            load_rows<D, kThreads>(head, item.key_to, block, true, thread, buffers, stage);
            commit_copies();
        };
        load(first_block, 0);
        const Sight sight = sight_of(call, item, kv_head, first_row);
        Query<D> query;
        load_query<D>(query, q, sight.rows, call.shape.heads);
        const bool works = first_row < item.rows; // the others only load
        RowSums<D> sums, total;
        sums.clear();
        total.clear();
        int stage = 0, split = 0;
        for (int block = first_block; block < end_block; ++block, stage ^= 1) {
            if (block + 1 < end_block) {
                load(block + 1, stage ^ 1);
                wait_copies<1>();
            } else {
                wait_copies<0>();
            }
            __syncthreads(); // this block of keys is there, for all
            if (works) {
                Scores scores;
                multiply_keys<D>(scores, query, buffers, stage);
                weigh<D, kCapped>(scores, call.shape, sight, block, sums);
                add_values<D>(scores, buffers, stage, sums);
                if (ends_split(block, end_block))
                    end_split<D>(call, item, kv_head, split++, first_row, sums, total);
            }
            __syncthreads(); // all are done with it, before it is written over
        }
        if (works && item.partial < 0) write_rows<D>(call, sight.rows, total, out);
    }
}

// A warp an item of at most 16 rows. The next keys come while values are added, the next values while scores are made.
template <int D, bool kCapped>
__global__ void __launch_bounds__(kMaxFewWarps * kWarp, 1)
    attend_few_kernel(AttentionCall call, RowsOf<Bf16> out, RowsOf<const Bf16> q) {
    const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp, warps = int(blockDim.x) / kWarp;
    const int kv_heads = call.shape.kv_heads, tiles = header_of(call).tiles;
    const int work = (header_of(call).items - tiles) * kv_heads;
    const Buffers<D> buffers{dynamic_shared() + warp * Buffers<D>::kBytes};
    // Neighbouring work goes to different blocks, so that all have some.
    for (int w = warp * int(gridDim.x) + int(blockIdx.x); w < work; w += warps * int(gridDim.x)) {
        const AttentionItem item = item_of(call, tiles + w / kv_heads);
        const int kv_head = w % kv_heads;
        const HeadPages<D> head(call, item, kv_head);
        const int first_block = item.key_from / kKeys, end_block = (item.key_to + kKeys - 1) / kKeys;
        const auto load = [&](int block, bool values) { // nothing after the last block
            if (block < end_block)
                load_rows<D, kWarp>(head, item.key_to, block, values, lane, buffers, 0);
            commit_copies();
        };
        load(first_block, false);
        load(first_block, true);
        const Sight sight = sight_of(call, item, kv_head, 0);
        Query<D> query;
        load_query<D>(query, q, sight.rows, call.shape.heads);
        RowSums<D> sums, total;
        sums.clear();
        total.clear();
        int split = 0;
        for (int block = first_block; block < end_block; ++block) {
            Scores scores;
            wait_copies<1>(); // this block's keys are there
            sync_warp();
            multiply_keys<D>(scores, query, buffers, 0);
            sync_warp();
            load(block + 1, false);
            weigh<D, kCapped>(scores, call.shape, sight, block, sums);
            wait_copies<1>(); // and its values
            sync_warp();
            add_values<D>(scores, buffers, 0, sums);
            sync_warp();
            load(block + 1, true);
            if (ends_split(block, end_block)) end_split<D>(call, item, kv_head, split++, 0, sums, total);
        }
        wait_copies<0>();
        if (item.partial < 0) write_rows<D>(call, sight.rows, total, out);
    }
}

template <int D, bool kCapped>
void start(Stream stream, const AttentionCall& call, const pb_tensor& out, const pb_tensor& q) {
    const auto rows = [](const pb_tensor& t, auto* data) {
        return RowsOf<std::remove_pointer_t<decltype(data)>>{data, t.strides[0], t.strides[1],
                                                             static_cast<int32_t>(t.shape[1])};
    };
    const auto run = [&](auto* kernel, uint32_t blocks, uint32_t threads, uint64_t shared) {
        allow_shared(reinterpret_cast<const void*>(kernel), shared);
        launch(kernel, blocks, threads, shared, stream, call, rows(out, static_cast<Bf16*>(out.data)),
               rows(q, static_cast<const Bf16*>(q.data)));
    };
    // Both always: a captured graph must find them when a later plan needs them.
    run(attend_tiles_kernel<D, kCapped>, call.grid.tiles, kThreads, kStages * Buffers<D>::kBytes);
    run(attend_few_kernel<D, kCapped>, call.grid.few, call.grid.few_warps * kWarp,
        call.grid.few_warps * Buffers<D>::kBytes);
}

}  // namespace

void attend_tiles(Stream stream, const AttentionCall& call, const pb_tensor& out, const pb_tensor& q) {
    const bool capped = call.shape.soft_cap > 0.f;
    if (call.shape.head_dim == 64) (capped ? start<64, true> : start<64, false>)(stream, call, out, q);
    else (capped ? start<128, true> : start<128, false>)(stream, call, out, q);
}

AttentionGrid attention_grid(const AttentionShape& shape, uint32_t multiprocessors, uint64_t shared_bytes) {
    constexpr uint64_t kOfTheDriver = 1024; // of each block
    const uint64_t stage = shape.head_dim == 128 ? Buffers<128>::kBytes : Buffers<64>::kBytes;
    const auto between = [](uint64_t x, uint32_t low, uint32_t high) {
        return x < low ? low : x > high ? high : static_cast<uint32_t>(x);
    };
    AttentionGrid out;
    const uint32_t each = between(shared_bytes / (kStages * stage + kOfTheDriver), 1, 2); // registers allow no third
    out.tiles = multiprocessors * each;
    out.few = multiprocessors;
    out.few_warps = between((shared_bytes - kOfTheDriver) / stage, 1, kMaxFewWarps);
    return out;
}

}  // namespace patchbay::kernels::cuda
