// Attention over pages on a GPU: how a step's queries and keys are split into work (plain C++), and the kernels that
// do it. A row's bits follow from its query and its keys by absolute position alone: keys come in blocks of kKeys,
// sums are merged every kSplit keys in ascending order, by the same instructions for any split of the work. Used
// by the attention plugin `paged_cuda`.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/cuda.hpp"

namespace patchbay::kernels::cuda {

constexpr int kTileRows = 64; // (token, head of the group) pairs of one sequence and KV head that share keys
constexpr int kKeys = 64;     // that are loaded at a time
constexpr int kSplit = 256;   // keys: a multiple of kKeys
constexpr int kMaxHeadDim = 512;
constexpr int kFewRows = 16;  // an item of so many rows or fewer is a warp's, where takes_tiles()

struct AttentionItem { // for each KV head: rows of a sequence, from first_row on, over keys [key_from, key_to)
    int32_t sequence, token; // the row of the batch where the sequence's tokens begin
    int32_t first_row, rows; // a row is token · group + head of the group
    int32_t key_from, key_to; // key_from is a multiple of kKeys
    int32_t partial; // where its first split's sums go, in rows; −1: it sees all keys of its rows and writes the result
    int32_t reserved;
};

struct AttentionMerge { // sums of all splits of some rows, to be merged: split i of row r is at partial + i · rows + r
    int32_t token, first_row, rows, partial, splits;
    int32_t reserved[3];
};

struct AttentionHeader { // begins the plan in device memory
    int32_t items, merges;
    int32_t tiles; // the first of the items, which have more than kFewRows rows; the others have fewer
    int32_t reserved[13];
};

// What runs at once on a GPU, and so is launched: blocks that each take a tile, and blocks whose warps each take an
// item of few rows.
struct AttentionGrid {
    uint32_t tiles = 1, few = 1, few_warps = 1;
};
// Of a GPU with so many multiprocessors that have so much shared memory each.
AttentionGrid attention_grid(const AttentionShape&, uint32_t multiprocessors, uint64_t shared_bytes);

// Limits of a plan, and how much work keeps the machine busy.
struct AttentionLimits {
    int32_t items = 0, merges = 0, partial_rows = 0; // capacity
    AttentionGrid grid;
};

// Sizes for batches of so many sequences, tokens and tokens a sequence.
AttentionLimits attention_limits(const AttentionShape&, int32_t max_seqs, int32_t max_tokens, int32_t max_seq_len,
                                 const AttentionGrid&);

// Where the parts of a plan buffer lie, in bytes.
struct AttentionLayout {
    uint64_t items = 0, merges = 0, states = 0, sums = 0, bytes = 0;
};
AttentionLayout attention_layout(const AttentionShape&, const AttentionLimits&);

struct AttentionPlan {
    std::vector<AttentionItem> items; // those of more than kFewRows rows first
    std::vector<AttentionMerge> merges;
    int32_t partial_rows = 0, tiles = 0; // tiles: items of more than kFewRows rows
    AttentionHeader header() const { return {int32_t(items.size()), int32_t(merges.size()), tiles, {}}; }
};
// The batch is valid (fault_of). Returns false if it needs more items than there is room for.
bool plan_attention(const AttentionShape&, const AttentionBatch&, const AttentionLimits&, AttentionPlan&);

// One layer's attention. All pointers are of device memory; tensors (T, heads or kv_heads, head_dim), unit inner
// stride.
struct AttentionCall {
    AttentionShape shape;
    KvPages kv; // a page is [keys: kv_heads × block_size × head_dim][values: the same]
    const uint8_t* plan = nullptr; // header, items, merges, room for partial sums, as layout says
    AttentionLayout layout;
    const int32_t* block_starts = nullptr; // (sequences + 1): a sequence's pages begin there in
    const int32_t* blocks = nullptr;       // page ids; −1: freed
    const int32_t* positions = nullptr;    // (tokens)
    AttentionGrid grid;                    // to launch, for any plan
};

uint64_t page_bytes(const AttentionShape&);
// k, v of `tokens` tokens into their slots; −1: not written
void append_kv(Stream, const AttentionShape&, const KvPages&, const int64_t* slots, int64_t tokens, const pb_tensor& k,
               const pb_tensor& v);
// With tensor cores where takes_tiles(), else element by element.
void attend(Stream, const AttentionCall&, const pb_tensor& out, const pb_tensor& q);
// head_dim 64 or 128, all bf16, rows on lines of 16 bytes
bool takes_tiles(const AttentionShape&, const pb_tensor& out, const pb_tensor& q, const KvPages&);

}  // namespace patchbay::kernels::cuda
