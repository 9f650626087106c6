// What turns a word into ids: the `model` of a tokenizer. Implemented by Bpe (byte-level), CharacterBpe, AffixBpe,
// Unigram, WordPiece and WordLevel.
#pragma once
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace patchbay::text {

class SubwordModel {
  public:
    virtual ~SubwordModel() = default;
    // Appends the ids of a word. Byte-level models take any bytes, the others valid UTF-8. Any thread.
    virtual void encode(std::string_view word, std::vector<TokenId>& out) const = 0;
};

}  // namespace patchbay::text
