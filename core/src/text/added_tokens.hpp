// Finds the tokens of `added_tokens` in text, leftmost and longest first, before anything else sees the text.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

class AddedTokens {
  public:
    void add(AddedToken);
    bool empty() const { return tokens_.empty(); }

    static constexpr TokenId kText = -1;
    struct Section {
        Span span;
        TokenId id; // kText: text between added tokens, never empty
    };
    std::vector<Section> split(std::string_view text) const;

  private:
    struct Node { // of a trie over bytes
        std::map<unsigned char, uint32_t> next;
        int32_t token = -1; // index in tokens_
    };
    struct Match {
        int32_t token; // −1: none
        size_t end;
    };
    Match longest_at(std::string_view text, size_t at) const;

    std::vector<AddedToken> tokens_;
    std::vector<Node> nodes_{1};
    bool starts_[256] = {}; // bytes that a token begins with
};

}  // namespace patchbay::text
