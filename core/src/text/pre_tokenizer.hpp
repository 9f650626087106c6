// Cuts text into the words that BPE works on: the `pre_tokenizer` of tokenizer.json.
#pragma once
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/regex.hpp"

namespace patchbay::text {

class PreTokenizer {
  public:
    // ByteLevel, or a Sequence of Split, Digits and at last ByteLevel.
    static Result<PreTokenizer> from_json(const nlohmann::json&);

    struct Words {
        std::vector<std::string_view> words; // of the text, or of `prefixed`
        std::deque<std::string> prefixed;    // words that got a space in front
    };
    void split(std::string_view text, Words& out) const; // appends; text: valid UTF-8

  private:
    enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
    enum class Takes { kMatches, kGaps /* `invert`: what lies between matches counts as the match */ };
    struct Split {
        Regex regex;
        Behavior behavior;
        Takes takes = Takes::kMatches;
    };
    struct Part { // of a text, in order, without holes
        Span span;
        bool match;
    };

    PreTokenizer() = default;
    Result<> add(const nlohmann::json&);
    Result<> add_split(const nlohmann::json&);
    Result<> add_byte_level(const nlohmann::json&);
    static void apply(const Split&, std::string_view text, const Regex::Scratch&, std::vector<Span>& out);

    std::vector<Split> splits_;
    bool byte_level_ = false;   // seen: must be the last
    bool prefix_space_ = false; // a word that does not start with a space gets one
    std::optional<Split> byte_level_split_;
};

}  // namespace patchbay::text
