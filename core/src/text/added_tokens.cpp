#include "text/added_tokens.hpp"

#include "text/characters.hpp"

namespace patchbay::text {
namespace {

bool word_touches(std::string_view text, Span span) {
    size_t before = span.begin, after = span.end;
    return (before > 0 && is_word(character_before(text, before))) ||
           (after < text.size() && is_word(next_character(text, after)));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    std::vector<std::pair<std::string, int32_t>> texts;
    for (size_t i = 0; i < tokens_.size(); ++i) {
        const std::string& text = tokens_[i].content;
        if (text.empty()) continue; // normalised away
        starts_[static_cast<unsigned char>(text.front())] = true;
        texts.emplace_back(text, static_cast<int32_t>(i));
    }
    texts_ = PieceTrie(std::move(texts));
}

std::vector<AddedTokens::Section> AddedTokens::split(std::string_view text) const {
    std::vector<Section> out;
    size_t done = 0;     // everything before is in `out`
    Span white = {1, 0}; // the last run that a token took
    for (size_t at = 0; at < text.size() && !texts_.empty();) {
        const bool starts = starts_[static_cast<unsigned char>(text[at])];
        const PieceTrie::Match match = starts ? texts_.longest(text.substr(at)) : PieceTrie::Match{0, PieceTrie::kNone};
        if (match.length == 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
        Span span{at, at + match.length};
        at = span.end;
        if (token.single_word && word_touches(text, span)) continue;
        if (token.lstrip)
            for (size_t i = span.begin; i > done && is_white_space(character_before(text, i));) span.begin = i;
        if (token.rstrip) {
            if (span.end < white.begin || span.end > white.end) { // each run is looked at once
                white = {span.end, span.end};
                for (size_t i = white.end; i < text.size() && is_white_space(next_character(text, i));) white.end = i;
            }
            span.end = white.end;
        }
        if (span.begin > done) out.push_back({{done, span.begin}, kText});
        out.push_back({span, token.id});
        done = span.end; // a token that begins in white space which the one before took is found all the same
    }
    if (done < text.size()) out.push_back({{done, text.size()}, kText});
    return out;
}

}  // namespace patchbay::text
