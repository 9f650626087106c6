// Fast attention over pages on the CPU. A query row's result is a pure function of its q and the keys up to its
// position, for each ISA level: keys are taken in blocks by absolute position, sums are split only every
// kSplit keys by absolute position and merged in order. So it does not depend on the batch, chunking, page size or
// threads. Used by the attention plugin `paged`.
#pragma once
#include <utility>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/cpu.hpp"

namespace patchbay::kernels {

struct AttendPart;
struct AttendState;

class CpuAttention {
  public:
    static constexpr int kSplit = 512; // keys
    static constexpr int kMaxHeadDim = 512;

    static constexpr uint64_t kMaxPartialBytes = uint64_t(64) << 20;

    // head_dim is even, up to kMaxHeadDim; kv_dtype F32, BF16, FP8 or I8. max_partial_bytes: bound of
    // the memory of partial sums of splits; two of them are held even if they take more.
    CpuAttention(const Machine&, const AttentionShape&, uint64_t max_partial_bytes = kMaxPartialBytes);

    // A page is, for each kv head, its keys in groups of 16 tokens (element-major, so that a vector holds 16 keys; bf16
    // in pairs of elements), then its values (block_size, head_dim), of bf16 in pairs of tokens. Codes are followed by
    // the f32 scales of the keys, then of the values, of each a multiple of 16.
    uint64_t page_bytes() const;

    // Makes the step's work list, which run() of the same batch uses.
    void plan(const AttentionBatch&);
    void append_kv(const AttentionBatch&, const KvPages&, const pb_tensor& k, const pb_tensor& v) const;
    void run(const AttentionBatch&, const KvPages&, const pb_tensor& out, const pb_tensor& q);
    uint64_t partial_bytes() const; // that the planned step's partial sums take

  private:
    struct Tile { // up to queries_ (row, head) pairs of one sequence and kv head
        int32_t seq, kv_head;
        int32_t first, count; // in row-major (rows of the sequence, heads of the group)
        int64_t begin, end;   // keys that any of them sees
    };
    struct PartialSums { // of splits, where tiles are few and long
        uint64_t max_bytes = 0;
        uint64_t state_floats = 0; // of one state: a multiple of 64 bytes
        std::vector<std::pair<uint32_t, int64_t>> splits{}; // (tile, split)
        int64_t round = 0;         // splits that are computed, then merged, before the next ones
        Scratch scratch{};         // (1 + round, state_floats)
        float* states = nullptr;   // there
    };
    struct Call; // one run()'s arguments

    void find_keys(const AttentionBatch&, Tile&) const;
    template <class Each>
    void for_rows(const AttentionBatch&, const Tile&, Each&&) const;
    AttendPart part_of(const Call&, const Tile&) const;
    void attend_split(const Tile&, AttendPart&, int64_t split, int64_t ahead, const AttendState&) const;
    AttendState partial(int64_t i) const;
    void attend_tile(const Call&, const Tile&) const;
    void attend_round(const Call&, int64_t first, int64_t end) const;
    void merge_round(const Call&, int64_t first, int64_t end, AttendState& all) const;
    void finish_tile(const Call&, const Tile&, const AttendState&) const;
    void add_sinks(const Call&, const Tile&, const AttendState&) const;

    Machine machine_;
    AttentionShape shape_;
    bool in_tiles_ = false;     // of bf16
    int32_t queries_ = 0;       // maximum of queries that share the loads of a key
    int64_t stride_ = 0;        // floats of a query's sums
    int32_t page_shift_ = -1;   // log2 of block_size; −1: not a power of two
    std::vector<Tile> tiles_;
    PartialSums partial_;
    bool inline_ = true;        // too little work to wake a thread
};

}  // namespace patchbay::kernels
