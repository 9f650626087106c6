// KV blocks: which are held, which are free, and what full ones contain. Holds no KV bytes, only their bookkeeping.
// Used by KvCache. Every operation is O(1) in the number of blocks, but for those that say otherwise.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kv/block_identities.hpp"
#include "kv/eviction_order.hpp"
#include "kv/free_list.hpp"
#include "kv/residencies.hpp"

namespace patchbay::kv {

class BlockPool {
  public:
    BlockPool(uint32_t block_count, uint32_t block_size);

    uint32_t total() const { return static_cast<uint32_t>(references_.size()); }
    uint32_t free() const { return free_.count(); } // including cached ones
    uint32_t used() const { return total() - free(); }
    uint32_t cached() const { return identities_.cached(); } // free blocks that still have an identity
    uint32_t references(BlockId b) const { return references_[static_cast<size_t>(b)]; }
    const BlockIdentities& identities() const { return identities_; }
    PresenceChanges& changes() { return identities_.changes(); }
    EvictionOrder& eviction() { return eviction_; }
    const EvictionOrder& eviction() const { return eviction_; }
    Residencies& residencies() { return residencies_; }
    // In the order in which allocate() takes them, if there is no evictor.
    const FreeList& free_list() const { return free_; }

    BlockId allocate();    // eviction().next(); its identity is cleared. kNoBlock: none left
    void hold(BlockId);    // one more reference; takes a free block out of the free list
    void release(BlockId); // one reference less; the last one makes it the last to be reused
    void discard(BlockId); // the same, but a block without identity becomes the first to be reused

    // Gives this identity to a held block without one. True: no other block has it, so it becomes findable now.
    // With an evictor, a block whose identity another has stays without.
    bool name(BlockId, const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens,
              BlockPlace = {0, 0});
    void forget(BlockId); // clears the identity of a held block, before it is written to
    void forget_all();    // clears every identity. O(blocks)

    // Whether the pool is consistent with these numbers of references, by block. O(blocks)
    Result<> audit(std::span<const uint32_t> references) const;

  private:
    bool drop(BlockId); // removes a reference; true: it was the last
    void clear_identity(BlockId);

    std::vector<uint32_t> references_; // by block
    BlockIdentities identities_;
    FreeList free_;
    EvictionOrder eviction_; // refers to free_ and identities_
    Residencies residencies_;
};

}  // namespace patchbay::kv
