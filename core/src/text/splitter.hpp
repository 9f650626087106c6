// Cuts text where something matches: what the pre-tokenizers Split, Digits, Whitespace, Punctuation and Metaspace do.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex.hpp"

namespace patchbay::text {

// What becomes of a match, between the text before and after it.
enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class Takes { kMatches, kGaps /* `invert`: what lies between matches counts as the match */ };

class Splitter {
  public:
    using IsOne = bool (*)(char32_t);
    // A text that is looked for as it is, not empty; each character of a class; or a pattern.
    using What = std::variant<std::string, IsOne, Regex>;
    Splitter(What what, Behavior behavior, Takes takes = Takes::kMatches)
        : what_(std::move(what)), behavior_(behavior), takes_(takes) {}

    struct Scratch { // of one thread
        Regex::Scratch regex;
        std::vector<Span> matches;
    };
    Scratch scratch() const;

    // Appends the parts of a text, in order, none empty. text: valid UTF-8. Spans count from the text's begin.
    void split(std::string_view text, Scratch&, std::vector<Span>& out) const;
    void find_all(std::string_view text, Scratch&) const; // into its `matches`

  private:
    What what_;
    Behavior behavior_;
    Takes takes_;
};

}  // namespace patchbay::text
