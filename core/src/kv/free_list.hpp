// The free blocks of a pool, in the order in which they are reused. Used by BlockPool. Every operation is O(1), but for
// those that say otherwise.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kv/block_id.hpp"

namespace patchbay::kv {

class FreeList {
  public:
    explicit FreeList(uint32_t block_count); // all of them, in order of their number

    uint32_t count() const { return count_; }
    BlockId first() const { return first_; } // the next to be reused; kNoBlock: none
    std::vector<BlockId> all() const;        // O(free)

    void push_back(BlockId);  // the last to be reused
    void push_front(BlockId); // the first to be reused
    void remove(BlockId);

    // Looks at all of them in portions, between which blocks come and go: one that is pushed back meanwhile comes last.
    // walk() adds up to max_blocks; false: it has come to the end. One walk at a time.
    void begin_walk();
    bool walk(size_t max_blocks, std::vector<BlockId>& out);

    // Whether the list is consistent and has exactly the blocks without references. O(blocks)
    Result<> audit(std::span<const uint32_t> references) const;

  private:
    struct Links {
        BlockId previous = kNoBlock, next = kNoBlock;
    };
    Links& at(BlockId b) { return links_[static_cast<size_t>(b)]; }
    const Links& at(BlockId b) const { return links_[static_cast<size_t>(b)]; }

    std::vector<Links> links_; // by block
    BlockId first_ = kNoBlock, last_ = kNoBlock;
    uint32_t count_ = 0;
    bool walking_ = false;
    BlockId walk_next_ = kNoBlock; // kNoBlock: what is pushed back next
};

// Here, as they are a part of every block that is taken and given back.
inline void FreeList::push_back(BlockId b) {
    at(b).previous = last_;
    (last_ == kNoBlock ? first_ : at(last_).next) = b;
    last_ = b;
    if (walking_ && walk_next_ == kNoBlock) walk_next_ = b;
    count_ += 1;
}

inline void FreeList::push_front(BlockId b) {
    at(b).next = first_;
    (first_ == kNoBlock ? last_ : at(first_).previous) = b;
    first_ = b;
    count_ += 1;
}

inline void FreeList::remove(BlockId b) {
    Links& links = at(b);
    if (walk_next_ == b) walk_next_ = links.next;
    (links.previous == kNoBlock ? first_ : at(links.previous).next) = links.next;
    (links.next == kNoBlock ? last_ : at(links.next).previous) = links.previous;
    links = {};
    count_ -= 1;
}

}  // namespace patchbay::kv
