// Pages that groups take from the pool, share and give back. Counts them by kind of group; for content that is lost it
// queues zeroing and adds events. Used by KvCache and its parts.
#pragma once
#include <array>
#include <cstdint>

#include "kv/block_pool.hpp"
#include "kv/cache_events.hpp"
#include "kv/copy_queue.hpp"
#include "kv/groups.hpp"
#include "kv/table_shape.hpp"

namespace patchbay::kv {

enum class Reuse { kLast, kFirst }; // when a page without an identity is reused: after all others, or before them

class GroupPages {
  public:
    GroupPages(uint32_t page_count, const TableShape& shape, CopyQueue& copies, CacheEvents& events)
        : pool_(page_count, shape.block_size()), shape_(shape), copies_(copies), events_(events) {}

    BlockPool& pool() { return pool_; }
    const BlockPool& pool() const { return pool_; }
    using UsedPages = std::array<uint32_t, kGroupKinds>; // by kind
    const UsedPages& used() const { return used_; }

    BlockId allocate(size_t group); // kNoBlock: none left
    void hold(size_t group, BlockId);
    void let_go(size_t group, BlockId, Reuse = Reuse::kLast);
    void forget(BlockId); // the identity of a held page
    void forget_all();    // every identity

  private:
    void note_removed(BlockId);
    uint32_t& used_by(size_t group) { return used_[static_cast<size_t>(shape_.groups()[group].kind)]; }

    BlockPool pool_;
    const TableShape& shape_;
    CopyQueue& copies_;
    CacheEvents& events_;
    UsedPages used_{};
};

}  // namespace patchbay::kv
