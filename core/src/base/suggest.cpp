#include "base/suggest.hpp"

#include <algorithm>
#include <vector>

namespace patchbay {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) { // optimal string alignment
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (size_t i = 1; i <= a.size(); ++i)
        for (size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
    constexpr size_t kLongest = 64; // misspelt words are short; untrusted ones need not be
    if (word.size() > kLongest) return "";
    size_t best = std::max<size_t>(word.size() / 3, 1) + 1;
    std::string found;
    for (const std::string& candidate : candidates) {
        if (candidate.size() > kLongest) continue;
        if (const size_t d = edit_distance(word, candidate); d < best) {
            best = d;
            found = candidate;
        }
    }
    return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
    const std::string near = nearest_word(word, candidates);
    return near.empty() ? "" : " (did you mean '" + near + "'?)";
}

}  // namespace patchbay
