// Copies of pages that the bookkeeping needs: the engine makes them in this order, before any write to a page.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_id.hpp"

namespace patchbay::kv {

enum class Way : uint8_t {
    kWithin, kToHost, kToDevice, // from page to page; from page to slot; from slot to page
    kZeroPage, kZeroSlot         // `to` becomes zero
};

struct PageCopy { // page ids; on the host's side, slots of the swap space
    BlockId to, from;
    Way way = Way::kWithin;
    bool operator==(const PageCopy&) const = default;
};

class CopyQueue {
  public:
    // From now on: pages and slots that no request holds and no lookup finds any more become zero.
    void zero_freed() { zeroing_ = true; }
    bool zeroes_freed() const { return zeroing_; }

    void add(const PageCopy& copy) { copies_.push_back(copy); }
    void zero_page(BlockId page) { zero(page, Way::kZeroPage); } // that was freed
    void zero_slot(BlockId slot) { zero(slot, Way::kZeroSlot); }

    std::span<const PageCopy> copies() const { return copies_; }
    void clear() { copies_.clear(); } // when they are made

  private:
    void zero(BlockId b, Way way) {
        if (zeroing_) copies_.push_back({b, b, way});
    }

    std::vector<PageCopy> copies_;
    bool zeroing_ = false;
};

}  // namespace patchbay::kv
