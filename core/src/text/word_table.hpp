// Words that are one token each, so that most words of a text need no merging: an immutable hash table, any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace patchbay::text {

class WordTable {
  public:
    void add(std::string_view word, TokenId); // of the same word the first counts; grows as needed
    std::optional<TokenId> find(std::string_view word) const;

  private:
    struct Slot { // open addressing, at most half full
        uint32_t hash = 0;
        uint32_t length = 0; // 0: empty
        uint32_t offset = 0; // in pool_
        TokenId id = 0;
    };
    void grow();

    std::string pool_;
    std::vector<Slot> slots_ = std::vector<Slot>(16);
    size_t used_ = 0;
};

}  // namespace patchbay::text
