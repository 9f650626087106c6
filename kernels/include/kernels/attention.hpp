// Arguments of attention over pages: shapes, the step's batch, where the pages are. Shared by the reference and the
// fast kernels; the fields have the meanings of patchbay/abi/attention.h.
#pragma once
#include <cstdint>
#include <string>

#include "patchbay/abi/tensor.h"

namespace patchbay::kernels {

struct AttentionShape {
    int32_t heads = 0, kv_heads = 0, head_dim = 0; // heads is a multiple of kv_heads
    int32_t block_size = 0;                        // tokens in a page
    int64_t window = 0;                            // keys that a token sees, including its own; 0: all
    float scale = 1;                               // of q·k
    float soft_cap = 0;                            // 0: none
    pb_dtype kv_dtype = PB_F32;                    // F32, BF16, FP8 or I8
    const float* slopes = nullptr;                 // (heads): times (key − query) added to a score; nullptr: none
};

struct AttentionBatch {
    uint32_t seq_count = 0;
    int32_t token_count = 0;
    const int32_t* query_starts = nullptr; // (seq_count + 1)
    const int32_t* seq_lens = nullptr;     // (seq_count)
    const int32_t* block_starts = nullptr; // (seq_count + 1): the pages of a sequence begin there in
    const int32_t* blocks = nullptr;       // page ids
    const int64_t* slot_mapping = nullptr; // (token_count): page · block_size + offset; −1: do not write
    const int32_t* positions = nullptr;    // (token_count): absolute

    const int32_t* table(uint32_t seq) const { return blocks + block_starts[seq]; }
    int64_t table_length(uint32_t seq) const { return int64_t{block_starts[seq + 1]} - block_starts[seq]; }
};

struct KvPages { // of one layer
    uint8_t* data = nullptr;
    uint64_t page_stride = 0;     // bytes
    const float* sinks = nullptr; // (heads): e^sinks[h] is added to what a softmax of head h divides by; nullptr: none
};

// From pb_attention_spec, pb_attention_batch and pb_kv_view, whose headers kernels do not include.
template <class Spec>
constexpr AttentionShape shape_of(const Spec& s) {
    return {.heads = int32_t(s.heads),
            .kv_heads = int32_t(s.kv_heads),
            .head_dim = int32_t(s.head_dim),
            .block_size = int32_t(s.block_size),
            .window = s.sliding_window,
            .scale = s.scale,
            .soft_cap = s.soft_cap,
            .kv_dtype = s.kv_dtype,
            .slopes = s.slopes};
}
template <class Batch>
constexpr AttentionBatch batch_of(const Batch& b) {
    return {.seq_count = b.seq_count,
            .token_count = int32_t(b.token_count),
            .query_starts = b.query_starts,
            .seq_lens = b.seq_lens,
            .block_starts = b.block_starts,
            .blocks = b.blocks,
            .slot_mapping = b.slot_mapping,
            .positions = b.positions};
}

template <class View>
constexpr KvPages pages_of(const View& v) {
    return {.data = v.data, .page_stride = v.page_stride, .sinks = v.sinks};
}

// The first key that the token at `position` sees.
constexpr int64_t first_key(const AttentionShape& shape, int64_t position) {
    return shape.window > 0 && position + 1 > shape.window ? position + 1 - shape.window : 0;
}

// Why the batch is invalid (a sequence past its block table, a position past its keys, …); empty: it is valid.
std::string fault_of(const AttentionShape&, const AttentionBatch&);

}  // namespace patchbay::kernels
