// The KV cache of an engine: block tables over one pool of pages, prefixes that sequences share, and KV in host memory.
// Joins the parts, each of which has a header of its own; used by the engine when it applies a plan.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "kv/block_table.hpp"
#include "kv/block_tables.hpp"
#include "kv/cache_events.hpp"
#include "kv/copy_queue.hpp"
#include "kv/group_pages.hpp"
#include "kv/groups.hpp"
#include "kv/kv_swap.hpp"
#include "kv/prefix_cache.hpp"
#include "kv/table_shape.hpp"

namespace patchbay::kv {

class KvCache {
  public:
    // `root`: as PrefixCache's.
    KvCache(uint32_t block_count, uint32_t block_size, PrefixCaching, std::string_view root,
            std::vector<GroupSpec> groups = {GroupSpec{}}, uint32_t swap_slots = 0);
    KvCache(const KvCache&) = delete;

    const TableShape& shape() const { return shape_; }
    const BlockPool& pool() const { return pages_.pool(); }
    uint32_t used(GroupKind kind) const { return pages_.used()[static_cast<size_t>(kind)]; } // pages
    BlockTables& tables() { return tables_; }
    const BlockTables& tables() const { return tables_; }
    PrefixCache& prefixes() { return prefixes_; }
    const PrefixCache& prefixes() const { return prefixes_; }
    KvSwap& swap() { return swap_; }
    CopyQueue& copies() { return copies_; }
    const CopyQueue& copies() const { return copies_; }
    CacheEvents& events() { return events_; }
    EvictionOrder& eviction() { return pages_.pool().eviction(); }
    Residencies& residencies() { return pages_.pool().residencies(); }

    // Whether these tables, all that exist, are sound and agree with the pool (audit.cpp). O(blocks).
    Result<> audit(std::span<const BlockTable* const>) const;

  private:
    // In the order in which they refer to each other.
    TableShape shape_;
    CopyQueue copies_;
    CacheEvents events_;
    GroupPages pages_;
    BlockTables tables_;
    PrefixCache prefixes_;
    KvSwap swap_;
};

}  // namespace patchbay::kv
