// Byte-pair encoding of one word: neighbours merge, lowest rank first, leftmost of equals. Words of any length take
// O(n log n). Source: Sennrich et al., "Neural machine translation of rare words with subword units", ACL 2016.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {

enum class WholeWords { kMerged, kLookedUp /* a word that is a token is taken as it is: ignore_merges */ };

class Bpe {
  public:
    using Pair = std::pair<std::string, std::string>; // spelled in the byte alphabet

    static Result<Bpe> create(const Vocabulary&, const std::vector<Pair>& merges, WholeWords);
    void encode(std::string_view word, std::vector<TokenId>& out) const; // appends

  private:
    struct Merge {
        uint32_t rank; // kNoRank: the two do not merge
        TokenId id;
    };
    struct Slot { // open addressing, at most half full
        uint64_t pair;
        Merge merge;
    };
    static constexpr uint32_t kNoRank = UINT32_MAX;
    static constexpr uint64_t kEmpty = UINT64_MAX; // no pair: ids are not negative

    Bpe() = default;
    Slot& slot(uint64_t pair);
    Merge find(TokenId left, TokenId right) const;
    void encode_short(std::string_view word, std::vector<TokenId>& out) const;
    void encode_long(std::string_view word, std::vector<TokenId>& out) const;

    std::array<TokenId, 256> byte_ids_{};
    std::vector<Slot> slots_;
    uint32_t shift_ = 0;                                                        // 64 − log2(slots)
    std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> words_; // by bytes; kLookedUp only
};

}  // namespace patchbay::text
