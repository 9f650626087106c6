// How long a chain of cached blocks is that a sequence can continue from. Used by KvCache to look up a prefix,
// and by PrefixWatch to follow one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace patchbay::kv {

// The first block that token `computed` sees through a window of this many tokens; 0: all of them.
constexpr size_t first_seen_block(uint64_t window, uint64_t computed, uint32_t block_size) {
    return window > 0 && computed + 1 > window ? (computed + 1 - window) / block_size : 0;
}

class PrefixLength {
  public:
    PrefixLength(std::span<const uint32_t> windows, uint32_t block_size)
        : windows_(windows), block_size_(block_size), in_a_row_(windows.size(), 0) {}

    // The next block of the chain; has_page(group): whether its page is cached. False: the chain ends before it.
    template <class HasPage>
    bool add(HasPage&& has_page) {
        bool complete = true;
        for (size_t g = 0; g < windows_.size(); ++g) {
            const bool there = has_page(g);
            if (!there && windows_[g] == 0) return false;
            in_a_row_[g] = there ? in_a_row_[g] + 1 : 0;
            const size_t blocks = seen_ + 1;
            complete &= in_a_row_[g] >= blocks - first_seen_block(windows_[g], blocks * block_size_, block_size_);
        }
        seen_ += 1;
        if (complete) blocks_ = seen_;
        return true;
    }
    // The greatest number of leading blocks whose pages are cached as far as the token after them sees: in groups that
    // keep all tokens from the first block on, in groups with a window the last ones.
    size_t blocks() const { return blocks_; }

  private:
    std::span<const uint32_t> windows_;
    uint32_t block_size_;
    std::vector<size_t> in_a_row_; // by group: cached pages in a row up to here
    size_t seen_ = 0, blocks_ = 0;
};

}  // namespace patchbay::kv
