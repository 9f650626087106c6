// What an evictor learns of each cached page. Used by EvictionOrder; keeps nothing until there is an evictor.
#pragma once
#include <cstdint>
#include <vector>

#include "kv/block_identities.hpp"
#include "kv/evictor.hpp"
#include "kv/free_list.hpp"

namespace patchbay::kv {

struct BlockPlace { // of a block in its sequence
    uint32_t position = 0; // of its first token
    uint32_t group = 0;
};

class CachedPages {
  public:
    CachedPages(FreeList& free, const BlockIdentities& identities) : free_(free), identities_(identities) {}
    CachedPages(const CachedPages&) = delete;

    void keep(uint32_t block_count) { details_.resize(block_count); } // from now on, before anything is cached
    void note_named(BlockId, BlockPlace);             // it has got an identity
    void note_released(BlockId b, uint64_t ns) { details_[static_cast<size_t>(b)].released_ns = ns; }
    void note_hit(BlockId); // a request has found it by its identity

    CachedPage page(BlockId) const;
    std::vector<CachedPage> all() const; // the one unused the longest first. O(free)
    // The same in portions, between which blocks come and go: what is freed meanwhile comes last. walk() looks at so
    // many free blocks; false: it has come to the end. One walk at a time.
    void begin_walk() { free_.begin_walk(); }
    bool walk(size_t max_blocks, std::vector<CachedPage>& out);

  private:
    struct Details {
        BlockPlace place;
        uint32_t hits = 0;
        uint64_t released_ns = 0; // by its last sequence
    };
    FreeList& free_;
    const BlockIdentities& identities_;
    std::vector<Details> details_; // by block; empty: nothing is kept
};

}  // namespace patchbay::kv
