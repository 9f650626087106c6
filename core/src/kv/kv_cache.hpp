// Block tables of sequences over one pool: growing, sharing by prefix, releasing. Used by the engine when it applies a
// plan. An operation that cannot be met changes nothing.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "kv/block_pool.hpp"

namespace patchbay::kv {

struct BlockTable { // of one sequence
    std::vector<BlockId> blocks;
    std::vector<BlockKey> keys; // of its full, named blocks, in order; never longer than `blocks`
};

enum class PrefixCaching { kOff, kOn };

class KvCache {
  public:
    // `root` names what makes KV interchangeable: model, dtype, layout.
    KvCache(uint32_t block_count, uint32_t block_size, PrefixCaching, std::string_view root);

    const BlockPool& pool() const { return pool_; }
    uint32_t block_size() const { return pool_.block_size(); }
    bool caches_prefixes() const { return caching_ == PrefixCaching::kOn; }

    // Leading tokens that are cached now: a hint. At least the last token is always left to compute.
    uint32_t count_cached(std::span<const int32_t> tokens) const;
    // Gives an empty table the longest cached prefix; returns its tokens.
    uint32_t adopt_prefix(BlockTable&, std::span<const int32_t> tokens);

    // Tokens that the table can hold, and how many it could hold if it took every free block.
    uint32_t capacity(const BlockTable& t) const { return static_cast<uint32_t>(t.blocks.size()) * block_size(); }
    uint64_t reachable(const BlockTable& t) const { return (t.blocks.size() + uint64_t{pool_.free()}) * block_size(); }
    // Makes room for `tokens` in all. False: not enough free blocks, nothing changed.
    bool grow(BlockTable&, uint32_t tokens);
    // Names the blocks that `tokens` (the computed ones, all confirmed) fill, so that others may share them.
    void name_full_blocks(BlockTable&, std::span<const int32_t> tokens);
    void release(BlockTable&); // deeper blocks become reusable before shallower ones

    Result<> reset_prefixes(); // refused while blocks are in use

  private:
    template <class Visit>
    void walk_prefix(std::span<const int32_t> tokens, Visit&& visit) const;

    BlockPool pool_;
    PrefixCaching caching_;
    BlockKey root_;
};

}  // namespace patchbay::kv
