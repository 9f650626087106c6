// The one implementation of Tokenizer: byte-level BPE, made of the parts that tokenizer.json names.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.hpp"
#include "text/bpe.hpp"
#include "text/normalizer.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/tokenizer.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {

class ByteLevelTokenizer final : public Tokenizer {
  public:
    struct Parts {
        Vocabulary vocabulary;
        Bpe bpe;
        Normalizer normalizer;
        PreTokenizer pre_tokenizer;
        AddedTokens raw_added, normalized_added; // looked for before and after normalisation
        std::vector<TokenId> prefix, suffix;     // what the post-processor puts around every text
        std::optional<TokenId> eos;
    };
    explicit ByteLevelTokenizer(Parts parts) : parts_(std::move(parts)) {}

    std::vector<TokenId> encode(std::string_view text) const override;
    std::string_view token_bytes(TokenId) const override;
    bool is_special(TokenId) const override;
    std::string decode(const std::vector<TokenId>& ids) const override;
    uint32_t vocab_size() const override { return parts_.vocabulary.size(); }
    std::optional<TokenId> eos() const override { return parts_.eos; }
    std::optional<TokenId> id_of(std::string_view token) const override { return parts_.vocabulary.find(token); }

  private:
    void encode_raw(std::string_view text, std::vector<TokenId>& out) const;   // between raw added tokens
    void encode_valid(std::string_view text, std::vector<TokenId>& out) const; // valid UTF-8
    Parts parts_;
};

}  // namespace patchbay::text
