// Which slots of the swap space are taken. A slot holds one page in host memory, for a waiting sequence. Used by
// KvCache; the bytes are the runner's.
#pragma once
#include <cstdint>
#include <vector>

#include "kv/block_pool.hpp"

namespace patchbay::kv {

class SwapSpace {
  public:
    explicit SwapSpace(uint32_t slots) : total_(slots) {}

    uint32_t total() const { return total_; }
    uint32_t free() const { return total_ - fresh_ + static_cast<uint32_t>(free_.size()); }
    uint32_t used() const { return total_ - free(); }

    // Needs a free slot. Takes the one freed last, so that no more memory is touched than necessary.
    BlockId take() {
        if (free_.empty()) return static_cast<BlockId>(fresh_++);
        const BlockId slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void give_back(BlockId slot) { free_.push_back(slot); }

  private:
    uint32_t total_, fresh_ = 0; // fresh_: the first slot that was never taken
    std::vector<BlockId> free_;
};

}  // namespace patchbay::kv
