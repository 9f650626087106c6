// What full blocks contain: the identity of each, and the blocks of each identity, which are equal. Used by BlockPool,
// which says which blocks are in use. Every operation is O(1), but for those that say otherwise.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "kv/block_id.hpp"
#include "kv/block_key.hpp"
#include "kv/presence.hpp"
#include "kv/twin_rings.hpp"

namespace patchbay::kv {

class BlockIdentities {
  public:
    BlockIdentities(uint32_t block_count, uint32_t block_size);

    uint32_t block_count() const { return static_cast<uint32_t>(blocks_.size()); }
    uint32_t block_size() const { return block_size_; }
    bool empty() const { return by_key_.empty(); }
    uint32_t cached() const { return cached_count_; } // blocks that have an identity and are free
    bool is_cached(BlockId b) const { return at(b).named && !at(b).in_use; }
    bool has(BlockId b) const { return at(b).named; }
    const BlockKey* key_of(BlockId b) const { return at(b).named ? &at(b).key : nullptr; } // null: none
    BlockId parent_of(BlockId) const; // the first block of its parent's identity; kNoBlock: none
    bool has_twin(BlockId b) const { return rings_.has_twin(b); } // of the same identity
    Presence presence(const BlockKey&) const;

    // A block with exactly these tokens after that parent: compared in full, not only by hash. Of several, the first
    // named one in use, since it costs no free block.
    std::optional<BlockId> find(const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens) const;

    // For a block in use that has none. True: no other block has it, so it becomes findable now.
    bool give(BlockId, const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens);
    void clear(BlockId);
    std::vector<BlockId> clear_all(); // returns a block of each identity. O(blocks)
    void set_in_use(BlockId, bool in_use); // after it was taken or freed

    PresenceChanges& changes() { return changes_; }

    // Whether they are consistent with these numbers of references, by block. O(blocks)
    Result<> audit(std::span<const uint32_t> references) const;

  private:
    struct Block {
        bool named = false, in_use = false; // in_use: only for named ones
        BlockKey key, parent;
    };
    Block& at(BlockId b) { return blocks_[static_cast<size_t>(b)]; }
    const Block& at(BlockId b) const { return blocks_[static_cast<size_t>(b)]; }

    uint32_t block_size_;
    std::vector<Block> blocks_;
    std::vector<int32_t> tokens_; // (blocks, block_size) of named blocks
    TwinRings rings_;             // a ring for each identity, the blocks in use first
    std::unordered_map<BlockKey, BlockId, BlockKeyHash> by_key_; // the first block of each ring
    uint32_t cached_count_ = 0;
    PresenceChanges changes_;
};

}  // namespace patchbay::kv
