// Which free block is taken first: the one unused the longest, or the evictor's choice. Used by BlockPool.
#pragma once
#include <cstdint>
#include <vector>

#include "kv/block_identities.hpp"
#include "kv/cached_pages.hpp"
#include "kv/evictor.hpp"
#include "kv/free_list.hpp"

namespace patchbay::kv {

class EvictionOrder {
  public:
    EvictionOrder(FreeList& free, const BlockIdentities& identities)
        : free_(free), identities_(identities), pages_(free, identities) {}

    // From now on, before anything is cached: it chooses which cached block is evicted; blocks without identity go
    // first, and of equal blocks only one has an identity. It outlives the last call here.
    void evict_by(Evictor&);
    bool has_evictor() const { return evictor_ != nullptr; }
    // So many blocks are taken next: the evictor chooses for all of them at once.
    void expect(uint64_t blocks) {
        if (evictor_) choose_victims(blocks);
    }
    // The block that is taken next, if nothing else comes between; kNoBlock: none.
    BlockId next() { return evictor_ ? next_of_evictor() : free_.first(); }

    uint64_t evictions() const { return evictions_; }
    uint64_t chosen_evictions() const { return chosen_evictions_; } // by the evictor
    CachedPages& pages() { return pages_; }
    const CachedPages& pages() const { return pages_; }

    void note_taken(BlockId); // next() is: it still has its identity
    // For the evictor, if there is one:
    void note_cached(BlockId, uint64_t now_ns); // no sequence holds it any more, and it has an identity
    void note_used(BlockId);                    // a sequence holds it again
    void note_removed(BlockId);                 // its identity is gone

  private:
    void choose_victims(uint64_t allocations);
    BlockId next_of_evictor();
    BlockId victim();

    FreeList& free_;
    const BlockIdentities& identities_;
    CachedPages pages_;
    uint64_t evictions_ = 0, chosen_evictions_ = 0;
    Evictor* evictor_ = nullptr;   // null: the one unused the longest is evicted
    std::vector<BlockId> victims_; // chosen and not yet evicted, the next one last
    uint64_t expected_ = 0;        // evictions to come for which it was asked
};

}  // namespace patchbay::kv
