// Attention element by element, for any head size and dtype: a warp a row, a key at a time. Also what both kinds of
// attention share: writing KV, and merging the sums of splits.
#include "cuda/attention.cuh"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kWarps = 4;                        // of a block
constexpr int kPerLane = kMaxHeadDim / kWarp;    // elements of a head that a lane holds at most

// k, v (T, kv_heads, head_dim) → slots. A thread an element.
template <class From, class To>
__global__ void append_kernel(AttentionShape shape, KvPages kv, const int64_t* slots, int64_t tokens, RowsOf<From> k,
                              RowsOf<From> v) {
    const int64_t dim = shape.head_dim, heads = shape.kv_heads, count = tokens * heads * dim;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t d = i % dim, row = i / dim, head = row % heads, slot = slots[row / heads];
        if (slot < 0) continue;
        const int64_t page = slot / shape.block_size, offset = slot % shape.block_size;
        To* const at = reinterpret_cast<To*>(kv.data + uint64_t(page) * kv.page_stride);
        at[(head * shape.block_size + offset) * dim + d] = from_float<To>(to_float(k.row(row)[d]));
        at[((heads + head) * shape.block_size + offset) * dim + d] = from_float<To>(to_float(v.row(row)[d]));
    }
}

template <class Q, class Kv>
__global__ void attend_kernel(AttentionCall call, RowsOf<Q> out, RowsOf<const Q> q) {
    const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
    const int dim = call.shape.head_dim, kv_heads = call.shape.kv_heads, heads = call.shape.heads;
    const int work = header_of(call).items * kv_heads;
    for (int w = int(blockIdx.x); w < work; w += int(gridDim.x)) {
        const AttentionItem item = item_of(call, w / kv_heads);
        const int kv_head = w % kv_heads;
        const int32_t* const pages = call.blocks + call.block_starts[item.sequence];
        for (int r = warp; r < item.rows; r += kWarps) {
            const RowPlace at = place_of(call, item, kv_head, r);
            const Q* const query = q.row(at.token * heads + at.head);
            float x[kPerLane], sum[kPerLane], total[kPerLane];
            for (int i = 0; i < kPerLane; ++i) {
                const int d = lane + i * kWarp;
                x[i] = d < dim ? to_float(query[d]) : 0.f;
                total[i] = 0.f;
            }
            Sums all{-INFINITY, 0.f};
            for (int from = item.key_from, split = 0; from < item.key_to; ++split) {
                const int end = (from / kSplit + 1) * kSplit, to = end < item.key_to ? end : item.key_to;
                Sums s{-INFINITY, 0.f};
                for (int i = 0; i < kPerLane; ++i) sum[i] = 0.f;
                for (int key = from > at.first ? from : at.first; key < to && key <= at.position; ++key) {
                    const Kv* const k = kv_row<Kv>(call, pages, kv_head, key, false);
                    const Kv* const v = kv_row<Kv>(call, pages, kv_head, key, true);
                    float dot = 0.f;
                    for (int i = 0; i < kPerLane; ++i) {
                        const int d = lane + i * kWarp;
                        if (d < dim) dot += x[i] * to_float(k[d]);
                    }
                    const float score = score_of(call.shape, warp_sum(dot));
                    const float m = fmaxf(s.m, score), base = base_of(m);
                    const float keep = power_of_two(s.m - base), weight = power_of_two(score - base);
                    s = {m, s.l * keep + weight};
                    for (int i = 0; i < kPerLane; ++i) {
                        const int d = lane + i * kWarp;
                        if (d < dim) sum[i] = sum[i] * keep + weight * to_float(v[d]);
                    }
                }
                if (item.partial >= 0) {
                    const int64_t row = item.partial + int64_t{split} * item.rows + r;
                    if (lane == 0) *state_at(call, row, kv_head) = s;
                    for (int i = 0; i < kPerLane; ++i)
                        if (lane + i * kWarp < dim) sums_at(call, row, kv_head)[lane + i * kWarp] = sum[i];
                } else {
                    const Shares share = shares_of(all.m, s.m);
                    for (int i = 0; i < kPerLane; ++i) total[i] = merged(total[i], share.a, sum[i], share.b);
                    all = {share.m, merged(all.l, share.a, s.l, share.b)};
                }
                from = to;
            }
            if (item.partial >= 0) continue;
            all = with_sink(call, at.head, all);
            Q* const result = out.row(at.token * heads + at.head);
            for (int i = 0; i < kPerLane; ++i)
                if (lane + i * kWarp < dim) result[lane + i * kWarp] = from_float<Q>(result_of(total[i], all));
        }
    }
}

// A warp a row and KV head.
template <class Q>
__global__ void merge_kernel(AttentionCall call, RowsOf<Q> out) {
    const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
    const int dim = call.shape.head_dim, kv_heads = call.shape.kv_heads, heads = call.shape.heads;
    const int group = heads / kv_heads, work = header_of(call).merges * kv_heads;
    const auto* const merges = reinterpret_cast<const AttentionMerge*>(call.plan + call.layout.merges);
    for (int w = int(blockIdx.x); w < work; w += int(gridDim.x)) {
        const AttentionMerge merge = merges[w / kv_heads];
        const int kv_head = w % kv_heads;
        for (int r = warp; r < merge.rows; r += kWarps) {
            const int row = merge.first_row + r, head = kv_head * group + row % group;
            Q* const result = out.row((merge.token + row / group) * heads + head);
            float total[kPerLane];
            for (int i = 0; i < kPerLane; ++i) total[i] = 0.f;
            Sums all{-INFINITY, 0.f};
            for (int split = 0; split < merge.splits; ++split) {
                const int64_t partial = merge.partial + int64_t{split} * merge.rows + r;
                const Sums s = *state_at(call, partial, kv_head);
                const float* const sum = sums_at(call, partial, kv_head);
                const Shares share = shares_of(all.m, s.m);
                for (int i = 0; i < kPerLane; ++i)
                    if (lane + i * kWarp < dim) total[i] = merged(total[i], share.a, sum[lane + i * kWarp], share.b);
                all = {share.m, merged(all.l, share.a, s.l, share.b)};
            }
            all = with_sink(call, head, all);
            for (int i = 0; i < kPerLane; ++i)
                if (lane + i * kWarp < dim) result[lane + i * kWarp] = from_float<Q>(result_of(total[i], all));
        }
    }
}

template <class T>
RowsOf<T> heads_of(const pb_tensor& t) { // (tokens, heads, dim), a row each head
    return {static_cast<T*>(t.data), t.strides[0], t.strides[1], static_cast<int32_t>(t.shape[1])};
}

}  // namespace

void append_kv(Stream stream, const AttentionShape& shape, const KvPages& kv, const int64_t* slots, int64_t tokens,
               const pb_tensor& k, const pb_tensor& v) {
    constexpr int kThreads = 256;
    if (tokens == 0) return;
    const uint32_t blocks = blocks_for(tokens * shape.kv_heads * shape.head_dim, kThreads);
    with_type(k.dtype, [&](auto from) {
        with_type(shape.kv_dtype, [&](auto to) {
            using From = decltype(from);
            using To = decltype(to);
            launch(append_kernel<From, To>, blocks, kThreads, 0, stream, shape, kv, slots, tokens, heads_of<From>(k),
                   heads_of<From>(v));
        });
    });
}

bool takes_tiles(const AttentionShape& shape, const pb_tensor& out, const pb_tensor& q, const KvPages& kv) {
    const auto lined = [](const pb_tensor& t) {
        return t.dtype == PB_BF16 && reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.strides[0] % 8 == 0 &&
               t.strides[1] % 8 == 0;
    };
    return (shape.head_dim == 64 || shape.head_dim == 128) && shape.kv_dtype == PB_BF16 && lined(out) && lined(q) &&
           reinterpret_cast<uintptr_t>(kv.data) % 16 == 0 && kv.page_stride % 16 == 0;
}

void attend(Stream stream, const AttentionCall& call, const pb_tensor& out, const pb_tensor& q) {
    if (q.shape[0] == 0) return;
    if (takes_tiles(call.shape, out, q, call.kv)) {
        attend_tiles(stream, call, out, q);
    } else {
        with_type(q.dtype, [&](auto tq) {
            with_type(call.shape.kv_dtype, [&](auto tkv) {
                using Q = decltype(tq);
                using Kv = decltype(tkv);
                launch(attend_kernel<Q, Kv>, call.grid.tiles, kWarps * kWarp, 0, stream, call, heads_of<Q>(out),
                       heads_of<const Q>(q));
            });
        });
    }
    with_type(out.dtype, [&](auto t) { // always started: a captured graph must find it when a later plan needs it
        using Q = decltype(t);
        launch(merge_kernel<Q>, call.grid.tiles, kWarps * kWarp, 0, stream, call, heads_of<Q>(out));
    });
}

}  // namespace patchbay::kernels::cuda
