// Byte-level BPE: a word is its bytes. Where the vocabulary lacks a byte, it becomes the unknown token or, without one,
// is left out, as in Hugging Face tokenizers.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "text/byte_tokens.hpp"
#include "text/merge_table.hpp"
#include "text/subword_model.hpp"
#include "text/vocabulary.hpp"
#include "text/word_table.hpp"

namespace patchbay::text {

enum class WholeWords { kMerged, kLookedUp /* a word that is a token is taken as it is: ignore_merges */ };

using MergePair = std::pair<std::string, std::string>;
// Of pairs as they are spelled in the vocabulary, ranked by their order. continuing_prefix: which the right one has and
// loses.
Result<MergeTable> read_merge_table(const Vocabulary&, const std::vector<MergePair>&,
                                    std::string_view continuing_prefix = "");

class Bpe final : public SubwordModel {
  public:
    // merges: spelled in the byte alphabet. vocabulary: of the model, without added tokens.
    static Result<Bpe> create(const Vocabulary&, const std::vector<MergePair>& merges, WholeWords);
    // Two neighbours merge wherever together they are a token, those of the lowest id first; a word that is a token is
    // one. Tokens: spelled in the byte alphabet.
    static Result<Bpe> create_ranked(const Vocabulary&);

    struct Unknown {           // the replacement of a byte that is no token
        TokenId id = kNoToken; // kNoToken: nothing
        bool fused = false;    // a run of such bytes is one token
    };
    bool lacks_bytes() const { return lacks_bytes_; }
    void set_unknown(Unknown unknown) { unknown_ = unknown; }
    void encode(std::string_view word, std::vector<TokenId>& out) const override;

  private:
    explicit Bpe(MergeTable merges) : merges_(std::move(merges)) {}
    static Result<Bpe> with_table(const Vocabulary&, MergeTable, WholeWords);
    void merge(std::string_view word, std::vector<TokenId>& out) const;
    void append_symbols(std::string_view word, std::vector<TokenId>& out) const;

    ByteTokens byte_ids_{}; // kNoToken: not in the vocabulary
    Unknown unknown_;
    bool lacks_bytes_ = false;
    MergeTable merges_;
    WordTable words_; // by bytes: the tokens that merging their own bytes gives; with kLookedUp all of them
};

}  // namespace patchbay::text
