// SentencePiece's precompiled_charsmap: replacements of characters, as a double-array trie and their texts. The
// format is that of Darts-clone (Yata); every position is checked, because the file may be hostile.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace patchbay::text {

class Charsmap {
  public:
    static Result<Charsmap> parse(std::string_view blob);
    static Result<Charsmap> parse_base64(std::string_view blob);

    struct Match {
        size_t length; // bytes of the text
        std::string_view becomes;
    };
    enum class Prefer { kLongest, kShortest };
    std::optional<Match> at(std::string_view text, Prefer) const; // the rule for the beginning of the text

    // As Hugging Face applies it: a grapheme cluster of up to five bytes as a whole, by the shortest rule that its
    // beginning matches, else each character. text: valid UTF-8. False, with `out` invalid: the result is longer than
    // max_bytes.
    bool apply(std::string_view text, size_t max_bytes, std::string& out) const;

  private:
    Charsmap() = default;
    void apply_cluster(std::string_view cluster, std::string& out) const;
    std::vector<uint32_t> units_;
    std::string becomes_; // each ends with NUL
};

}  // namespace patchbay::text
