#include "text/character_bpe.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "text/characters.hpp"

namespace patchbay::text {

constexpr char32_t kSpaceCharacter = 0x2581;
constexpr TokenId kFrozen = 1 << 29;  // added to the id of a user-defined symbol: it merges with nothing
constexpr TokenId kUnknownSymbol = 1 << 30; // a character that is in no token

CharacterBpe::CharacterBpe(Parts parts) : parts_(std::move(parts)) {
    // Where unknown characters are left out, those around them are neighbours, and a border is none.
    const bool leaves_out =
        parts_.unk == kNoToken &&
        (!parts_.bytes || std::find(parts_.bytes->begin(), parts_.bytes->end(), kNoToken) != parts_.bytes->end());
    cuts_ = parts_.characters.contains(kSpaceCharacter) && !leaves_out;
    std::vector<TokenId> merged;
    for (const auto& [text, id] : parts_.tokens)
        for (size_t at = text.find(kSpace, 1); at != text.npos; at = text.find(kSpace, at + 1)) {
            size_t before = at;
            before_space_.insert(character_before(text, before));
        }
    for (const auto& [text, id] : parts_.tokens) {
        merged.clear();
        merge(text, merged);
        if (merged.size() == 1 && merged[0] == id) words_.add(text, id);
        if (parts_.ignore_merges) whole_.add(text, id);
    }
    parts_.tokens = {};
}

// No merge crosses the border between a space and a character that no token has before one, so what lies between such
// borders can be merged alone: text becomes words again, even where nothing cut it before.
size_t CharacterBpe::next_cut(std::string_view text) const {
    constexpr size_t kMaxPieceBytes = size_t{1} << 28; // positions are 32-bit
    for (size_t at = text.find(kSpace, 1); at != text.npos && at < kMaxPieceBytes; at = text.find(kSpace, at + 1)) {
        size_t before = at;
        if (!before_space_.contains(character_before(text, before))) return at;
    }
    size_t end = std::min(text.size(), kMaxPieceBytes);
    while (end < text.size() && continues_character(text[end])) --end;
    return end;
}

void CharacterBpe::encode(std::string_view word, std::vector<TokenId>& out) const {
    if (const auto whole = whole_.find(word)) return out.push_back(*whole);
    while (!word.empty()) {
        const std::string_view part = word.substr(0, cuts_ ? next_cut(word) : word.size());
        word.remove_prefix(part.size());
        if (const auto token = words_.find(part))
            out.push_back(*token);
        else
            merge(part, out);
    }
}

void CharacterBpe::merge(std::string_view part, std::vector<TokenId>& out) const {
    const size_t first = out.size();
    Symbols symbols{out, {}};
    append_symbols(part, symbols);
    out.resize(first + parts_.merges.merge(std::span(out).subspan(first)));
    if (!symbols.plain) resolve(symbols, first, out);
}

void CharacterBpe::append_symbols(std::string_view part, Symbols& out) const {
    size_t unknown_from = part.size() + 1; // where a run of unknown characters began; past the end: there is none
    const auto flush = [&](size_t to) {
        if (unknown_from < to) append_unknown(part.substr(unknown_from, to - unknown_from), out.ids);
        unknown_from = part.size() + 1;
    };
    for (size_t at = 0; at < part.size();) {
        const size_t begin = at;
        if (!parts_.user_defined.empty())
            if (const auto symbol = parts_.user_defined.longest(part.substr(at)); symbol.length > 0) {
                out.ids.push_back(symbol.value + kFrozen);
                out.plain = false;
                at += symbol.length;
                continue;
            }
        const auto found = parts_.characters.find(next_character(part, at));
        if (found != parts_.characters.end()) {
            flush(begin);
            out.ids.push_back(found->second);
            out.plain &= found->second < kInner;
        } else if (parts_.unknown == Unknown::kAfterMerging) {
            out.ids.push_back(kUnknownSymbol);
            out.unknown.push_back(part.substr(begin, at - begin));
            out.plain = false;
        } else if (spelled_by_bytes(part.substr(begin, at - begin))) {
            flush(begin);
            append_bytes(part.substr(begin, at - begin), out.ids);
        } else if (unknown_from > begin) {
            unknown_from = begin;
        }
    }
    flush(part.size());
}

bool CharacterBpe::spelled_by_bytes(std::string_view character) const {
    return parts_.bytes && std::all_of(character.begin(), character.end(), [&](char c) {
               return (*parts_.bytes)[static_cast<unsigned char>(c)] != kNoToken;
           });
}

void CharacterBpe::append_bytes(std::string_view character, std::vector<TokenId>& out) const {
    for (const char c : character) out.push_back((*parts_.bytes)[static_cast<unsigned char>(c)]);
}

void CharacterBpe::append_unknown(std::string_view characters, std::vector<TokenId>& out) const {
    if (parts_.unk == kNoToken) return;
    for (size_t at = 0; at < characters.size();) {
        at += parts_.fuse_unk ? characters.size() : character_length(characters[at]);
        out.push_back(parts_.unk);
    }
}

void CharacterBpe::resolve(const Symbols& symbols, size_t first, std::vector<TokenId>& ids) const {
    const std::vector<TokenId> merged(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
    ids.resize(first);
    size_t next_unknown = 0;
    bool after_unk = false;
    for (const TokenId symbol : merged) {
        if (symbol < kInner || (symbol >= kFrozen && symbol < kUnknownSymbol)) {
            ids.push_back(symbol < kInner ? symbol : symbol - kFrozen);
            after_unk = false;
            continue;
        }
        std::string inner;
        if (symbol < kFrozen) append_character(inner, parts_.inner[static_cast<size_t>(symbol - kInner)]);
        const std::string_view character = symbol < kFrozen ? inner : symbols.unknown[next_unknown++];
        const bool by_bytes = spelled_by_bytes(character);
        if (by_bytes)
            append_bytes(character, ids);
        else if (!after_unk || !parts_.fuse_unk)
            append_unknown(character, ids);
        after_unk = !by_bytes;
    }
}

}  // namespace patchbay::text
