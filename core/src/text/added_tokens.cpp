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

void AddedTokens::add(AddedToken token) {
    if (token.content.empty()) return; // normalised away
    uint32_t node = 0;
    for (const char c : token.content) {
        const auto [at, added] =
            nodes_[node].next.try_emplace(static_cast<unsigned char>(c), static_cast<uint32_t>(nodes_.size()));
        node = at->second;
        if (added) nodes_.emplace_back();
    }
    starts_[static_cast<unsigned char>(token.content.front())] = true;
    nodes_[node].token = static_cast<int32_t>(tokens_.size());
    tokens_.push_back(std::move(token));
}

AddedTokens::Match AddedTokens::longest_at(std::string_view text, size_t at) const {
    Match best{-1, at};
    uint32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
        const auto next = nodes_[node].next.find(static_cast<unsigned char>(text[i]));
        if (next == nodes_[node].next.end()) break;
        node = next->second;
        if (nodes_[node].token >= 0) best = {nodes_[node].token, i + 1};
    }
    return best;
}

std::vector<AddedTokens::Section> AddedTokens::split(std::string_view text) const {
    std::vector<Section> out;
    size_t done = 0;     // everything before is in `out`
    Span white = {1, 0}; // the last run that a token took
    for (size_t at = 0; at < text.size() && !tokens_.empty();) {
        const Match match = starts_[static_cast<unsigned char>(text[at])] ? longest_at(text, at) : Match{-1, 0};
        if (match.token < 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[static_cast<size_t>(match.token)];
        Span span{at, match.end};
        at = match.end;
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
