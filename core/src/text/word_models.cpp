#include "text/word_models.hpp"

#include "base/utf8.hpp"

namespace patchbay::text {

WordPiece::WordPiece(Parts parts) : unknown_(parts.unknown), max_characters_(parts.max_characters) {
    std::vector<std::pair<std::string, int32_t>> first, later;
    for (auto& [text, id] : parts.tokens) {
        if (text.starts_with(parts.continuing_prefix) && text.size() > parts.continuing_prefix.size())
            later.emplace_back(text.substr(parts.continuing_prefix.size()), id);
        if (!text.empty()) first.emplace_back(std::move(text), id);
    }
    first_ = PieceTrie(std::move(first));
    later_ = PieceTrie(std::move(later));
}

void WordPiece::encode(std::string_view word, std::vector<TokenId>& out) const {
    if (count_characters(word) > max_characters_) return out.push_back(unknown_);
    const size_t begin = out.size();
    for (size_t at = 0; at < word.size();) {
        const PieceTrie::Match match = (at == 0 ? first_ : later_).longest(word.substr(at));
        if (match.length == 0) {
            out.resize(begin);
            return out.push_back(unknown_);
        }
        out.push_back(match.value);
        at += match.length;
    }
}

}  // namespace patchbay::text
