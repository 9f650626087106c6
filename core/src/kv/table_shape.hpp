// What all block tables of a model have in common: their groups and the size of a block. Only calculates; used by
// KvCache and its parts.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_table.hpp"
#include "kv/groups.hpp"

namespace patchbay::kv {

class TableShape {
  public:
    TableShape(std::vector<GroupSpec> groups, uint32_t block_size);

    uint32_t block_size() const { return block_size_; }
    std::span<const GroupSpec> groups() const { return groups_; } // groups of tokens before groups of states
    // By group of tokens: its window; 0: it keeps all tokens.
    std::span<const uint32_t> windows() const { return windows_; }
    uint32_t state_pages() const { return static_cast<uint32_t>(groups_.size() - windows_.size()); }

    uint32_t capacity(const BlockTable& t) const { return t.blocks * block_size_; } // tokens
    uint64_t blocks_for(uint64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }
    size_t first_seen(size_t group, uint64_t computed) const; // the first block that token `computed` sees
    // Pages that a table still needs for this many tokens, including those of states.
    uint64_t lacking(const BlockTable&, uint64_t tokens) const;

  private:
    std::vector<GroupSpec> groups_;
    std::vector<uint32_t> windows_;
    uint32_t block_size_;
};

}  // namespace patchbay::kv
