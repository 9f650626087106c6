// Splits text into the words that the model works on: the `pre_tokenizer` of tokenizer.json.
#pragma once
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "text/splitter.hpp"

namespace patchbay::text {

enum class TextBegin { kYes, kNo };                  // whether a piece begins where the whole text does
enum class PrefixScheme { kAlways, kFirst, kNever }; // which pieces get a space in front: each, the text's first, none

class PreTokenizer {
  public:
    static Result<PreTokenizer> from_json(const nlohmann::json&); // null: the text is one word

    bool byte_level() const { return byte_level_; } // words are bytes, which the vocabulary spells

    struct Words {
        std::vector<std::string_view> words; // of the text, or of `changed`
        std::deque<std::string> changed;     // pieces that a step rewrote
    };
    void split(std::string_view text, TextBegin, Words& out) const; // appends; text: valid UTF-8

  private:
    struct Prefix { // a space in front of a piece that has none
    };
    struct Metaspace { // spaces become `space`
        std::string space;
        PrefixScheme scheme;
    };
    struct AfterByteLevel { // cuts the spelling of a piece's bytes in the byte alphabet
        Splitter splitter;
    };
    using Step = std::variant<Splitter, Prefix, Metaspace, AfterByteLevel>;
    struct Piece {
        std::string_view text;
        TextBegin begin;
    };

    PreTokenizer() = default;
    Result<> add(const nlohmann::json&);
    Result<> add_byte_level(const nlohmann::json&);
    Result<> add_metaspace(const nlohmann::json&);
    static void apply(const Splitter&, std::vector<Piece>&);
    static void apply(const Prefix&, std::vector<Piece>&, std::deque<std::string>& changed);
    static void apply(const AfterByteLevel&, std::vector<Piece>&);
    static void apply(const Metaspace&, std::vector<Piece>&, std::deque<std::string>& changed);

    std::vector<Step> steps_;
    bool byte_level_ = false; // after ByteLevel: only steps that split may follow
};

// The `pattern` of Split and Replace, {"String": "…"} or {"Regex": "…"}; type: of the part, for errors.
Result<Splitter::What> read_pattern(const nlohmann::json& part, const std::string& type);
// Metaspace's, which its decoder has too.
Result<PrefixScheme> read_prefix_scheme(const nlohmann::json&);
Result<std::string> read_replacement(const nlohmann::json&);

}  // namespace patchbay::text
