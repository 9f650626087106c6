// The pages of sequences: their tables grow, give back what their windows have passed, and share pages until one of
// them writes. An operation that cannot be met changes nothing.
#pragma once
#include <cstdint>

#include "kv/block_table.hpp"
#include "kv/copy_queue.hpp"
#include "kv/group_pages.hpp"
#include "kv/table_shape.hpp"

namespace patchbay::kv {

class BlockTables {
  public:
    BlockTables(const TableShape& shape, GroupPages& pages, CopyQueue& copies)
        : shape_(shape), pages_(pages), copies_(copies) {}

    // How many of n tokens after the `computed` ones fit if the table takes every free page, copies of shared ones
    // included.
    uint32_t fitting(const BlockTable&, uint32_t computed, uint32_t n) const;
    // Makes room for `tokens` in total. False: not enough free pages, nothing changed.
    bool grow(BlockTable&, uint32_t tokens);
    // Frees what no token from `computed` on sees: deeper blocks become reusable before shallower ones.
    void free_outside_window(BlockTable&, uint32_t computed);
    void release(BlockTable& t) { give_back(t, Reuse::kLast); } // deeper blocks become reusable before shallower ones
    // Its unnamed blocks are the next to be reused, before any that can be found.
    void discard(BlockTable& t) { give_back(t, Reuse::kFirst); }

    // Shares the pages of another table's first `tokens` tokens with an empty one. False: some of them are freed, or
    // the model has states, which belong to the latest token only.
    bool can_fork(const BlockTable& from, uint32_t tokens) const;
    bool fork(const BlockTable& from, uint32_t tokens, BlockTable& to);
    // Pages that hold token `at` and that others hold too: they must be copied before a write.
    uint32_t shared_pages(const BlockTable&, uint32_t at) const;
    // Replaces them by pages of its own, which are copied first. Needs as many free pages.
    void copy_on_write(BlockTable&, uint32_t at);
    uint32_t pages_freed_if_preempted(const BlockTable&) const; // pages that no other table holds

  private:
    const BlockPool& pool() const { return pages_.pool(); }
    void give_back(BlockTable&, Reuse);

    const TableShape& shape_;
    GroupPages& pages_;
    CopyQueue& copies_;
};

}  // namespace patchbay::kv
