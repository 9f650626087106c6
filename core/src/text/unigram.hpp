// The Unigram model: of all ways to cut a word into pieces the one with the highest sum of scores (Viterbi).
// Source: Kudo, "Subword regularization", ACL 2018.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/byte_tokens.hpp"
#include "text/piece_trie.hpp"
#include "text/subword_model.hpp"
#include "text/word_table.hpp"

namespace patchbay::text {

class Unigram final : public SubwordModel {
  public:
    // In which sums are kept decides between near-equal ways: SentencePiece's are float, Hugging Face's double.
    enum class Sums { kFloat, kDouble };
    struct Piece {
        std::string text; // not empty
        TokenId id;
        double score;
    };
    struct Parts {
        std::vector<Piece> pieces;
        TokenId unk = 0;                 // a run of characters that no piece spells,
        std::optional<ByteTokens> bytes; // unless it has a token for each of its bytes
        double unk_score = 0;
        Sums sums = Sums::kDouble;
    };
    explicit Unigram(Parts);
    void encode(std::string_view word, std::vector<TokenId>& out) const override;

  private:
    template <class Sum>
    void best_way(std::string_view word, std::vector<TokenId>& out) const;
    void append_unknown(std::string_view run, std::vector<TokenId>& out) const;

    PieceTrie trie_; // to pieces' positions
    std::vector<double> scores_;
    std::vector<TokenId> ids_;
    TokenId unk_;
    std::optional<ByteTokens> bytes_;
    double unk_score_;
    Sums sums_;
    WordTable words_; // that are their own best way
};

}  // namespace patchbay::text
