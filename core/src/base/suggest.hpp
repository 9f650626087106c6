// "did you mean": the known word nearest to a misspelt one.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace patchbay {

// The candidate within a third of the word's length in edits (transpositions count once), or "".
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace patchbay
