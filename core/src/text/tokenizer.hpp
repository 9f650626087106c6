// Text to token ids and back. Thread-safe after construction.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/token_id.hpp"

namespace patchbay::text {

struct DecodeState;
enum class SpecialTokens { kLeftOut, kKept }; // of a text
struct AroundText { // tokens, such as BOS and EOS
    size_t before = 0, after = 0;
};

class Tokenizer {
  public:
    // A model folder with tokenizer.json, with vocab.json and merges.txt, or with tokenizer.model (SentencePiece or
    // ranks); or one of these files. tokenizer_config.json beside it is read where there is one.
    static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& folder_or_file);
    virtual ~Tokenizer() = default;

    // Ids of text; special tokens in the text are recognised. Adds BOS where the tokenizer's post-processor says so.
    virtual std::vector<TokenId> encode(std::string_view text) const = 0;
    virtual AroundText around_text() const { return {}; } // how many encode() adds
    // The same of a part of a text: nothing is added.
    virtual std::vector<TokenId> encode_inside(std::string_view text) const { return encode(text); }
    // The bytes of one token inside a text (it may be a part of a character); empty for an unknown id.
    virtual std::string_view token_bytes(TokenId) const = 0;
    virtual bool is_special(TokenId) const = 0;
    // Text of ids: bytes joined, invalid UTF-8 replaced by U+FFFD.
    std::string decode(const std::vector<TokenId>& ids, SpecialTokens = SpecialTokens::kLeftOut) const;
    // The same piece by piece: appends what became complete with this token, and at the end what is left.
    virtual void decode_next(DecodeState&, TokenId, std::string& out) const;
    virtual void decode_rest(DecodeState&, std::string& out) const;
    virtual uint32_t vocab_size() const = 0; // highest id + 1
    virtual std::optional<TokenId> eos() const = 0;
    virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
};

}  // namespace patchbay::text
