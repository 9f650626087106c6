#include "text/added_tokens.hpp"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace patchbay::text {
namespace {

bool is_word(UChar32 c) { // \w: Alphabetic, Mark, Decimal_Number, Connector_Punctuation, Join_Control
    constexpr uint32_t kKinds = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
    return c >= 0 &&
           (u_isUAlphabetic(c) || (U_GET_GC_MASK(c) & kKinds) != 0 || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL));
}

const uint8_t* raw(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

UChar32 character_before(std::string_view text, size_t& at) { // at > 0; moves to its begin
    const size_t window = std::min<size_t>(at, 4); // the macro's positions are 32-bit
    auto i = static_cast<int32_t>(window);
    UChar32 c;
    U8_PREV(raw(text.substr(at - window)), 0, i, c);
    at -= window - static_cast<size_t>(i);
    return c;
}

UChar32 character_after(std::string_view text, size_t& at) { // at < size; moves past it
    UChar32 c;
    U8_NEXT(raw(text), at, text.size(), c);
    return c;
}

bool word_touches(std::string_view text, Span span) {
    size_t before = span.begin, after = span.end;
    return (before > 0 && is_word(character_before(text, before))) ||
           (after < text.size() && is_word(character_after(text, after)));
}

bool is_space(UChar32 c) { return c >= 0 && u_isUWhiteSpace(c); }

}  // namespace

void AddedTokens::add(AddedToken token) {
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
    size_t done = 0; // everything before is in `out`
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
            for (size_t i = span.begin; i > done && is_space(character_before(text, i));) span.begin = i;
        if (token.rstrip)
            for (size_t i = span.end; i < text.size() && is_space(character_after(text, i));) span.end = i;
        if (span.begin > done) out.push_back({{done, span.begin}, kText});
        out.push_back({span, token.id});
        done = span.end;
        at = std::max(at, done);
    }
    if (done < text.size()) out.push_back({{done, text.size()}, kText});
    return out;
}

}  // namespace patchbay::text
