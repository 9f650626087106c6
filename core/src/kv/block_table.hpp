// The pages of one sequence, and where they are while its KV is in host memory. Kept with the sequence, changed by
// KvCache and its parts.
#pragma once
#include <cstdint>
#include <vector>

#include "kv/block_id.hpp"
#include "kv/block_key.hpp"

namespace patchbay::kv {

struct BlockTable { // of one sequence
    // By group: a page for each block of tokens, kNoBlock for one outside the window; or the one page of the
    // state.
    std::vector<std::vector<BlockId>> pages;
    std::vector<uint32_t> freed_prefix; // by group: number of leading blocks that were freed
    uint32_t blocks = 0;          // blocks of tokens that the table has room for
    uint32_t held = 0;            // pages of all groups
    std::vector<BlockKey> keys;   // of its full, named blocks, in order; at most `blocks`
    BlockKey salt;                // only sequences with the same salt find its blocks
};

struct SwappedTable { // of a sequence whose KV is in host memory
    BlockTable slots;    // its pages are slots
    uint32_t tokens = 0; // number of tokens whose KV they hold
    bool empty() const { return slots.held == 0; }
};

}  // namespace patchbay::kv
