// Rings of equal blocks: each block is in one ring, alone at first. Used by BlockIdentities. Every operation is O(1),
// but for those that say otherwise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/block_id.hpp"

namespace patchbay::kv {

class TwinRings {
  public:
    explicit TwinRings(uint32_t block_count) : links_(block_count) { clear(); }

    BlockId next(BlockId b) const { return at(b).next; } // itself: it is alone
    bool has_twin(BlockId b) const { return next(b) != b; }

    void join(BlockId, BlockId head); // one that is alone, as the last of the ring that begins with `head`
    void leave(BlockId);              // it is alone then
    void clear();                     // each block is alone then. O(blocks)

  private:
    struct Links {
        BlockId previous, next;
    };
    Links& at(BlockId b) { return links_[static_cast<size_t>(b)]; }
    const Links& at(BlockId b) const { return links_[static_cast<size_t>(b)]; }

    std::vector<Links> links_; // by block
};

inline void TwinRings::join(BlockId b, BlockId head) {
    const BlockId last = at(head).previous;
    at(b) = {.previous = last, .next = head};
    at(last).next = at(head).previous = b;
}

inline void TwinRings::leave(BlockId b) {
    const Links links = at(b);
    at(links.previous).next = links.next;
    at(links.next).previous = links.previous;
    at(b) = {.previous = b, .next = b};
}

inline void TwinRings::clear() {
    for (size_t b = 0; b < links_.size(); ++b) links_[b] = {static_cast<BlockId>(b), static_cast<BlockId>(b)};
}

}  // namespace patchbay::kv
