#include "kv/free_list.hpp"

#include <algorithm>
#include <string>

#include "base/refusals.hpp"

namespace patchbay::kv {

FreeList::FreeList(uint32_t block_count) : links_(block_count) {
    for (uint32_t b = 0; b < block_count; ++b) push_back(static_cast<BlockId>(b));
}

std::vector<BlockId> FreeList::all() const {
    std::vector<BlockId> out;
    for (BlockId b = first_; b != kNoBlock; b = at(b).next) out.push_back(b);
    return out;
}

void FreeList::begin_walk() {
    walking_ = true;
    walk_next_ = first_;
}

bool FreeList::walk(size_t max_blocks, std::vector<BlockId>& out) {
    for (; max_blocks > 0 && walk_next_ != kNoBlock; --max_blocks) {
        out.push_back(walk_next_);
        walk_next_ = at(walk_next_).next;
    }
    walking_ = walk_next_ != kNoBlock;
    return walking_;
}

Result<> FreeList::audit(std::span<const uint32_t> references) const {
    std::vector<bool> listed(links_.size(), false);
    uint32_t free = 0;
    BlockId previous = kNoBlock;
    for (BlockId b = first_; b != kNoBlock; previous = b, b = at(b).next) {
        const auto block = "block " + std::to_string(b);
        if (listed[static_cast<size_t>(b)]) return broken("the free list comes back to " + block);
        listed[static_cast<size_t>(b)] = true;
        if (references[static_cast<size_t>(b)] > 0) return broken(block + " is in the free list and in use");
        if (at(b).previous != previous) return broken("the free list is torn at " + block);
        free += 1;
    }
    if (previous != last_) return broken("the free list does not end where it should");
    if (free != count_)
        return broken("the free list has " + std::to_string(free) + " blocks and counts " + std::to_string(count_));
    const auto in_use =
        static_cast<uint32_t>(std::count_if(references.begin(), references.end(), [](uint32_t n) { return n > 0; }));
    if (free + in_use != links_.size())
        return broken(std::to_string(free) + " blocks are free and " + std::to_string(in_use) + " in use, of " +
                      std::to_string(links_.size()));
    return {};
}

}  // namespace patchbay::kv
