// Models that look words up: WordPiece, the vocabulary of BERT, and WordLevel, whose words are whole.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_tokens.hpp"
#include "text/piece_trie.hpp"
#include "text/subword_model.hpp"
#include "text/word_table.hpp"

namespace patchbay::text {

// The longest token that a word begins with, then the longest with the prefix "##" that goes on, and so on. A word that
// ends otherwise, or is too long, is the unknown token.
// Source: Schuster and Nakajima, "Japanese and Korean voice search", ICASSP 2012; Devlin et al., "BERT", 2018.
class WordPiece final : public SubwordModel {
  public:
    struct Parts {
        std::vector<std::pair<std::string, TokenId>> tokens; // as they are spelled
        std::string continuing_prefix;                       // "##"; may be empty
        TokenId unknown = kNoToken;
        size_t max_characters = 100; // of a word
    };
    explicit WordPiece(Parts);
    void encode(std::string_view word, std::vector<TokenId>& out) const override;

  private:
    PieceTrie first_, later_; // tokens that begin a word; those that go on, without the prefix
    TokenId unknown_;
    size_t max_characters_;
};

class WordLevel final : public SubwordModel {
  public:
    WordLevel(WordTable words, TokenId unknown) : words_(std::move(words)), unknown_(unknown) {}
    void encode(std::string_view word, std::vector<TokenId>& out) const override {
        out.push_back(words_.find(word).value_or(unknown_));
    }

  private:
    WordTable words_;
    TokenId unknown_;
};

}  // namespace patchbay::text
