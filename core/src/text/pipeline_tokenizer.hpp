// The one implementation of Tokenizer: the parts that tokenizer.json names, or that a SentencePiece model implies, one
// after the other.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.hpp"
#include "text/decoder.hpp"
#include "text/detokenizer.hpp"
#include "text/normalizer.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/subword_model.hpp"
#include "text/tokenizer.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {

class PipelineTokenizer final : public Tokenizer {
  public:
    struct Parts {
        Vocabulary vocabulary;
        std::unique_ptr<const SubwordModel> model;
        Normalizer normalizer;
        PreTokenizer pre_tokenizer;
        Decoder decoder;
        std::vector<TokenId> prefix, suffix;         // what the post-processor puts around every text
        AddedTokens raw_added{}, normalized_added{}; // looked for before and after normalisation
        std::optional<TokenId> eos{};

        Result<> add(std::vector<AddedToken>); // to the vocabulary and to where they are looked for
    };
    static Result<std::shared_ptr<const Tokenizer>> create(Parts);

    std::vector<TokenId> encode(std::string_view text) const override;
    AroundText around_text() const override { return {parts_.prefix.size(), parts_.suffix.size()}; }
    std::vector<TokenId> encode_inside(std::string_view text) const override;
    std::string_view token_bytes(TokenId) const override;
    bool is_special(TokenId) const override;
    void decode_next(DecodeState&, TokenId, std::string& out) const override;
    void decode_rest(DecodeState&, std::string& out) const override;
    uint32_t vocab_size() const override { return parts_.vocabulary.size(); }
    std::optional<TokenId> eos() const override { return parts_.eos; }
    std::optional<TokenId> id_of(std::string_view token) const override { return parts_.vocabulary.find(token); }

  private:
    explicit PipelineTokenizer(Parts parts) : parts_(std::move(parts)) {}
    // Between raw added tokens: any bytes, then valid UTF-8.
    void encode_bytes(std::string_view text, TextBegin, std::vector<TokenId>& out) const;
    void encode_valid(std::string_view text, TextBegin, std::vector<TokenId>& out) const;
    Parts parts_;
};

}  // namespace patchbay::text
