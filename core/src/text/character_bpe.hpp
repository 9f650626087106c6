// BPE over characters, as SentencePiece trains it: Llama 2, Mistral, Gemma. Characters that the vocabulary lacks become
// byte tokens or the unknown token.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/byte_tokens.hpp"
#include "text/merge_table.hpp"
#include "text/piece_trie.hpp"
#include "text/subword_model.hpp"
#include "text/word_table.hpp"

namespace patchbay::text {

class CharacterBpe final : public SubwordModel {
  public:
    // When a character that is no token is replaced. Hugging Face replaces before merging; SentencePiece after, so
    // that such a character can still become part of a token there.
    enum class Unknown { kBeforeMerging, kAfterMerging };
    static constexpr TokenId kInner = 1 << 28; // from here on: symbols that are no token but a part of one

    struct Parts {
        MergeTable merges{0}; // over tokens and inner symbols
        std::unordered_map<char32_t, TokenId> characters;
        std::vector<char32_t> inner;     // the characters of the inner symbols, from kInner on
        std::optional<ByteTokens> bytes; // byte_fallback
        TokenId unk = kNoToken;          // kNoToken: unknown characters are left out
        bool fuse_unk = false;           // a run of unknown characters is one token
        Unknown unknown = Unknown::kBeforeMerging;
        PieceTrie user_defined;                              // symbols that are found first and never merge
        std::vector<std::pair<std::string, TokenId>> tokens; // all that merging may lead to
        bool ignore_merges = false;                          // a word that is a token is not merged
    };
    explicit CharacterBpe(Parts);
    void encode(std::string_view word, std::vector<TokenId>& out) const override;

  private:
    struct Symbols {
        std::vector<TokenId>& ids;
        std::vector<std::string_view> unknown; // the characters of the symbols kUnknownSymbol, in order
        bool plain = true;                     // all are tokens
    };
    size_t next_cut(std::string_view text) const;
    void merge(std::string_view part, std::vector<TokenId>& out) const;
    void append_symbols(std::string_view part, Symbols&) const;
    void append_unknown(std::string_view characters, std::vector<TokenId>& out) const;
    void resolve(const Symbols&, size_t first, std::vector<TokenId>& ids) const;
    bool spelled_by_bytes(std::string_view character) const;
    void append_bytes(std::string_view character, std::vector<TokenId>& out) const;

    Parts parts_;
    bool cuts_ = false;                         // a space is a token, so text can be cut before it
    std::unordered_set<char32_t> before_space_; // the characters that some token has before a space
    WordTable words_;                           // parts that are one token
    WordTable whole_;                           // ignore_merges: all tokens
};

}  // namespace patchbay::text
