// What the attention kernels share: where keys lie, which of them a row sees, and how sums of splits are merged.
#pragma once
#include "cuda/kernel.cuh"
#include "kernels/cuda_attention.hpp"

namespace patchbay::kernels::cuda {

constexpr float kLog2E = 1.4426950408889634f;

// The sums of one row over some keys: m the greatest score (in powers of 2), l the sum of 2^(score − m); the values'
// sum is scaled alike. No key: −∞, 0.
struct Sums {
    float m, l;
};

// How much two sums count in their union: first · a + second · b.
struct Shares {
    float m, a, b;
};
__device__ inline float base_of(float m) { return m == -INFINITY ? 0.f : m; } // so that 2^(−∞ − m) is 0, not NaN
__device__ inline Shares shares_of(float first, float second) {
    const float m = fmaxf(first, second), base = base_of(m);
    return {m, power_of_two(first - base), power_of_two(second - base)};
}
// Rounded the same wherever it is compiled to: by a product, then a fused multiply-add.
__device__ inline float merged(float first, float a, float second, float b) {
    return fused_multiply_add(second, b, product(first, a));
}

// Once all keys are in: a sink has a score and no value, so it adds to what is divided by and to nothing else.
__device__ inline Sums with_sink(const AttentionCall& call, int head, const Sums& all) {
    if (!call.kv.sinks) return all;
    return {all.m, all.l + power_of_two(fused_multiply_add(call.kv.sinks[head], kLog2E, -base_of(all.m)))};
}

// What a row gives: the values' sum over that of the weights. Merged splits and whole rows divide alike.
__device__ inline float result_of(float sum, const Sums& all) { return quotient(sum, all.l); }

// A score as a power of 2, from q · k, rounded before it is used. The first: of a shape without a soft cap.
__device__ inline float uncapped_score_of(const AttentionShape& shape, float dot) {
    return product(dot, product(shape.scale, kLog2E));
}
__device__ inline float score_of(const AttentionShape& shape, float dot) {
    float score = dot * shape.scale;
    if (shape.soft_cap > 0.f) score = shape.soft_cap * tanhf(score / shape.soft_cap);
    return product(score, kLog2E);
}

struct RowPlace { // one row of a tile: a token and a head
    int64_t token;
    int32_t head;
    int32_t position, first; // keys [first, position] are seen; none: position −1
};
__device__ inline RowPlace place_of(const AttentionCall& call, const AttentionItem& item, int kv_head, int r) {
    const int group = call.shape.heads / call.shape.kv_heads, row = item.first_row + r;
    if (r >= item.rows) return {0, 0, -1, 0};
    const int64_t token = item.token + row / group;
    const int32_t position = call.positions[token];
    const int64_t unseen = call.shape.window > 0 ? position + 1 - call.shape.window : 0; // as first_key()
    return {token, kv_head * group + row % group, position, static_cast<int32_t>(unseen > 0 ? unseen : 0)};
}

// Where the head_dim elements of a key or value lie; nullptr: its page is gone.
template <class T>
__device__ inline const T* kv_row(const AttentionCall& call, const int32_t* pages, int kv_head, int key, bool values) {
    const AttentionShape& s = call.shape;
    const int32_t page = pages[key / s.block_size];
    if (page < 0) return nullptr;
    const int64_t row = (int64_t{values ? s.kv_heads : 0} + kv_head) * s.block_size + key % s.block_size;
    return reinterpret_cast<const T*>(call.kv.data + uint64_t(page) * call.kv.page_stride) + row * s.head_dim;
}

__device__ inline const AttentionHeader& header_of(const AttentionCall& call) {
    return *reinterpret_cast<const AttentionHeader*>(call.plan);
}
__device__ inline const AttentionItem& item_of(const AttentionCall& call, int i) {
    return reinterpret_cast<const AttentionItem*>(call.plan + call.layout.items)[i];
}
// The sums of a partial row: (m, l), and head_dim values. Written by items, read by merges.
__device__ inline Sums* state_at(const AttentionCall& call, int64_t row, int kv_head) {
    return reinterpret_cast<Sums*>(const_cast<uint8_t*>(call.plan) + call.layout.states) +
           (row * call.shape.kv_heads + kv_head);
}
__device__ inline float* sums_at(const AttentionCall& call, int64_t row, int kv_head) {
    return reinterpret_cast<float*>(const_cast<uint8_t*>(call.plan) + call.layout.sums) +
           (row * call.shape.kv_heads + kv_head) * call.shape.head_dim;
}

// attention_tiles.cu
void attend_tiles(Stream, const AttentionCall&, const pb_tensor& out, const pb_tensor& q);

}  // namespace patchbay::kernels::cuda
