// Which neighbours merge, and the merging: byte-pair encoding over ids. Lowest rank first, leftmost of equals; words of
// any length take O(n log n). All BPE models (bpe.hpp, character_bpe.hpp) end here.
// Source: Sennrich et al., "Neural machine translation of rare words with subword units", ACL 2016.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "text/tokenizer.hpp"

namespace patchbay::text {

class MergeTable {
  public:
    static constexpr uint32_t kNoRank = UINT32_MAX;
    struct Merge {
        uint32_t rank; // kNoRank: the two do not merge
        TokenId id;    // what they become
    };

    explicit MergeTable(size_t merges);           // maximum of calls of set()
    void set(TokenId left, TokenId right, Merge); // for equal pairs the last call counts; ids are not negative
    Merge find(TokenId left, TokenId right) const;
    size_t merge(std::span<TokenId> ids) const; // in place; returns how many remain, at the front. At most 2³² − 2

  private:
    struct Slot { // open addressing, at most half full
        uint64_t pair;
        Merge merge;
    };
    size_t merge_short(std::span<TokenId>) const;
    size_t merge_long(std::span<TokenId>) const;

    std::vector<Slot> slots_;
    uint32_t shift_; // 64 − log2(slots)
};

}  // namespace patchbay::text
