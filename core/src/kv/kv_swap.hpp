// KV of sequences in host memory: copies a table's pages out to slots, and back into pages.
#pragma once
#include <cstdint>
#include <span>

#include "kv/block_table.hpp"
#include "kv/block_tables.hpp"
#include "kv/copy_queue.hpp"
#include "kv/group_pages.hpp"
#include "kv/prefix_cache.hpp"
#include "kv/swap_space.hpp"
#include "kv/table_shape.hpp"

namespace patchbay::kv {

class KvSwap {
  public:
    struct Parts {
        const TableShape& shape;
        GroupPages& pages;
        BlockTables& tables;
        const PrefixCache& prefixes;
        CopyQueue& copies;
    };
    KvSwap(uint32_t slots, const Parts& parts) : space_(slots), p_(parts) {}

    const SwapSpace& space() const { return space_; }
    // Moves the pages of the first `tokens` tokens to slots and frees all pages. False: not enough slots,
    // nothing changed.
    bool out(BlockTable&, uint32_t tokens, SwappedTable&);
    // Gives an empty table pages for what is in the slots, which stay, and room for `room` tokens in total. Blocks that
    // can still be found by their identity are shared again and not copied; the others have no identity yet. `of`: the
    // sequence's tokens. False: not enough free pages, nothing changed.
    bool in(const SwappedTable&, std::span<const int32_t> of, uint32_t room, BlockTable&);
    void drop(SwappedTable&); // frees its slots

  private:
    SwapSpace space_;
    Parts p_;
};

}  // namespace patchbay::kv
