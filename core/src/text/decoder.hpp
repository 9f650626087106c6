// Tokens back to text: the `decoder` of tokenizer.json. The text of a token depends only on the token and on whether it
// is the first, so decoding streams; a few steps work on the joined text and hold back what a later token may change.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "text/detokenizer.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::text {

class Decoder {
  public:
    // null: ByteLevel for a byte-level vocabulary, else tokens are joined by spaces, as Hugging Face does.
    static Result<Decoder> from_json(const nlohmann::json&, bool byte_level);
    // What a SentencePiece model does with the space that it puts in front of a text.
    enum class LeadingSpaces { kKept, kOneDropped, kAllDropped };
    enum class BytePieces { kNone, kAll };
    static Decoder sentencepiece(LeadingSpaces, BytePieces);

    bool byte_level() const; // tokens are spelled in the byte alphabet, regardless of their place

    enum class Place { kFirst, kLater, kLast };
    static constexpr size_t kMaxBytes = 4096;
    // May be a part of a character. Cut after kMaxBytes: such a tokenizer is refused.
    std::string token_bytes(std::string_view spelled, Place) const;

    // later: token_bytes(spelled, kLater), which the caller keeps. Appends the text that became complete.
    void next(DecodeState&, std::string_view spelled, std::string_view later, std::string& out) const;
    void rest(DecodeState&, std::string& out) const;

  private:
    struct ByteLevel {};
    struct ByteFallback {};
    struct Spaced {}; // a space between tokens
    struct WordPieces { // a space before each token that does not begin with the prefix
        std::string prefix;
        bool cleanup; // signs lose the space before them
    };
    struct WordEnds { // a space where the suffix is, but at the end of the text
        std::string suffix;
    };
    struct Metaspace {
        std::string space;
        PrefixScheme scheme;
    };
    struct SentencePieceSpace {
        LeadingSpaces leading;
    };
    struct Replace {
        std::string from, to; // from: not empty
    };
    struct Strip { // up to so many of a character
        std::string character;
        uint32_t start, stop;
    };
    using TokenStep = std::variant<ByteLevel, ByteFallback, Spaced, WordPieces, WordEnds, Metaspace,
                                   SentencePieceSpace, Replace, Strip>;
    using TextStep = std::variant<Strip, Replace>;
    struct Apply;
    struct Push;
    struct Finish;

    Decoder() = default;
    Result<> add(const nlohmann::json&);
    Result<> add_words(const nlohmann::json&, const std::string& type);
    Result<> add_replace(const nlohmann::json&);
    Result<> add_strip(const nlohmann::json&);
    template <class Step>
    void add_step(Step step) {
        if (joined_) text_steps_.push_back(std::move(step));
        else token_steps_.push_back(std::move(step));
    }
    bool begins_text(std::string_view bytes) const;
    void add_ending(DecodeState&, std::string_view spelled, std::string_view later) const;
    void through_steps(DecodeState&, std::string text, std::string& out) const;

    std::vector<TokenStep> token_steps_;
    bool joined_ = false; // after Fuse or ByteLevel: later steps work on the joined text
    std::vector<TextStep> text_steps_;
};

}  // namespace patchbay::text
