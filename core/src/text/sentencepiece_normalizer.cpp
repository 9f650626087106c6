#include "text/sentencepiece_normalizer.hpp"

#include "text/characters.hpp"

namespace patchbay::text {

SentencePieceNormalizer::Prefix SentencePieceNormalizer::prefix_of(std::string_view text) const {
    if (const auto symbol = user_defined.longest(text); symbol.length > 0)
        return {symbol.length, text.substr(0, symbol.length)};
    if (charsmap)
        if (const auto rule = charsmap->at(text, Charsmap::Prefer::kLongest)) return {rule->length, rule->becomes};
    const size_t length = character_length(text[0]);
    return {length, text.substr(0, length)};
}

bool SentencePieceNormalizer::apply(std::string_view text, TextBegin begin, size_t max_bytes, std::string& out) const {
    const std::string_view space = escape_spaces ? "\u2581" : " ";
    if (remove_extra_spaces)
        while (!text.empty()) {
            const Prefix prefix = prefix_of(text);
            if (prefix.becomes != " ") break;
            text.remove_prefix(prefix.length);
        }
    if (text.empty()) return true;
    if (dummy_prefix == PrefixScheme::kAlways || (dummy_prefix == PrefixScheme::kFirst && begin == TextBegin::kYes))
        out += space;
    bool after_space = remove_extra_spaces;
    while (!text.empty()) {
        if (out.size() > max_bytes) return false;
        auto [length, becomes] = prefix_of(text);
        text.remove_prefix(length);
        while (after_space && becomes.starts_with(' ')) becomes.remove_prefix(1);
        for (const char c : becomes) {
            if (c == ' ')
                out += space;
            else
                out += c;
        }
        if (!becomes.empty()) after_space = remove_extra_spaces && becomes.ends_with(' ');
    }
    if (remove_extra_spaces)
        while (out.ends_with(space)) out.resize(out.size() - space.size());
    return true;
}

}  // namespace patchbay::text
