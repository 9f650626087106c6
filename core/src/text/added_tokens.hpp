// Finds the tokens of `added_tokens` in text, leftmost and longest first, before anything else sees the text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/piece_trie.hpp"
#include "text/regex.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::text {

struct AddedToken {
    TokenId id = 0;
    std::string content;
    bool special = false;
    bool single_word = false; // only where no letter or digit touches it
    bool lstrip = false;      // takes the white space before it
    bool rstrip = false;      // and after it
    bool normalized = false;  // is looked for in normalised text
};

// Tokens that a configuration only names, such as its bos_token, may be found in text like added ones. Files that say
// themselves which tokens those are list them all.
enum class NamedTokens { kFound, kFoundIfListed };

class AddedTokens {
  public:
    AddedTokens() = default;
    explicit AddedTokens(std::vector<AddedToken>); // of equal texts the last counts; those without one are in no text
    bool empty() const { return tokens_.empty(); }

    static constexpr TokenId kText = -1;
    struct Section {
        Span span;
        TokenId id; // kText: text between added tokens, never empty
    };
    std::vector<Section> split(std::string_view text) const;

  private:
    std::vector<AddedToken> tokens_;
    PieceTrie texts_;        // their indices in tokens_
    bool starts_[256] = {};  // bytes that a token begins with
};

}  // namespace patchbay::text
