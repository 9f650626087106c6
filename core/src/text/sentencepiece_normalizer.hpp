// The normalizer_spec of a SentencePiece model: its charsmap, and its treatment of spaces.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "text/charsmap.hpp"
#include "text/piece_trie.hpp"
#include "text/pre_tokenizer.hpp"

namespace patchbay::text {

struct SentencePieceNormalizer {
    std::optional<Charsmap> charsmap;
    PieceTrie user_defined;                            // symbols that are not changed
    PrefixScheme dummy_prefix = PrefixScheme::kAlways; // which non-empty texts get a space in front
    bool remove_extra_spaces = true;                   // at both ends, and repeated ones inside
    bool escape_spaces = true;                         // as U+2581

    // text: valid UTF-8. False, and `out` is no use: it got longer than `max_bytes`.
    bool apply(std::string_view text, TextBegin, size_t max_bytes, std::string& out) const;

  private:
    struct Prefix {
        size_t length; // bytes of the text
        std::string_view becomes;
    };
    Prefix prefix_of(std::string_view text) const; // text: not empty
};

}  // namespace patchbay::text
