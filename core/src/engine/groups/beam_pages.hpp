// How many pages the beams of a search take together, while windows free pages. A beam of `tokens` tokens has KV of all
// but the newest one; beams share full blocks of the prompt, and at worst nothing after it. In steps that compute no
// token after the end of a block, a table never has more than the pages of that block and of what its first token sees.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "kv/prefix_length.hpp"

namespace patchbay::engine {

class BeamPages {
  public:
    // windows: by group of tokens, 0: it keeps all tokens.
    BeamPages(std::span<const uint32_t> windows, uint32_t block_size) : windows_(windows), block_size_(block_size) {}

    size_t groups() const { return windows_.size(); }
    uint64_t blocks(uint64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }

    // Of a group: all `width` beams, while they compute the last of `tokens` tokens that have KV, or any before it.
    // The blocks that all beams share are those of the beam with the fewest tokens, so no mix of lengths takes more.
    uint64_t of_all(size_t group, uint64_t prompt, uint64_t tokens, uint64_t width) const {
        const uint64_t last = blocks(tokens) - 1; // the block
        const uint64_t first = seen(group, tokens > prompt ? std::max(last * block_size_, prompt) : last * block_size_);
        const uint64_t own = tokens > prompt ? last + 1 - std::max(first, prompt / block_size_) : 0;
        return last + 1 - first + (width - 1) * own;
    }

    // Of a group: the first beam, computed anew, which keeps for the others what token `from` sees.
    uint64_t of_first(size_t group, uint64_t from, uint64_t tokens) const {
        return blocks(tokens) - seen(group, from);
    }

    // Of all groups: what a search takes at most, whenever it is preempted. in_chunks: prompts may be split.
    uint64_t at_most(uint64_t prompt, uint64_t tokens, uint64_t width, bool in_chunks) const {
        uint64_t all = 0, first = 0;
        for (size_t g = 0; g < groups(); ++g) {
            all += of_all(g, prompt, tokens, width);
            first += in_chunks ? of_first(g, prompt, tokens) : blocks(tokens);
        }
        return std::max(all, first);
    }

  private:
    uint64_t seen(size_t group, uint64_t token) const { // the first block that it sees
        return kv::first_seen_block(windows_[group], token, block_size_);
    }

    const std::span<const uint32_t> windows_;
    const uint32_t block_size_;
};

}  // namespace patchbay::engine
