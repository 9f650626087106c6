// Chooses which cached page is evicted next, in place of the pool's own order. Implemented by the engine's port of
// policies, and by tests. Called by EvictionOrder, which keeps the truth and checks each choice.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kv/block_id.hpp"

namespace patchbay::kv {

struct CachedPage { // that no sequence holds, and whose content can be found
    BlockId page, parent;  // parent: of the block before it; kNoBlock: there is none, or it is not in the cache
    uint64_t block;        // hash of its tokens and all before them
    uint64_t released_ns;  // when the last sequence let go of it
    uint32_t position;     // of its first token in the sequence
    uint32_t group;
    uint32_t hits;         // requests that have found it in the cache
};

class Evictor {
  public:
    virtual ~Evictor() = default;
    virtual void cached(const CachedPage&) = 0; // it may be evicted from here on
    virtual void used(BlockId) = 0;             // a sequence holds it again
    virtual void removed(BlockId) = 0;          // its content is gone, or cannot be found any more
    // Writes pages to evict, the first to go first, and returns how many; for what is missing the pool chooses.
    virtual size_t choose(std::span<BlockId> out) = 0;
    virtual void refused(BlockId) = 0;          // it chose a page that is not cached
};

}  // namespace patchbay::kv
