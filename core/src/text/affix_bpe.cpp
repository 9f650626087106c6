#include "text/affix_bpe.hpp"

#include <algorithm>
#include <span>

#include "text/characters.hpp"

namespace patchbay::text {

bool AffixBpe::append_bytes(std::string_view symbol, std::vector<TokenId>& out) const {
    const auto token_of = [&](char c) { return (*parts_.bytes)[static_cast<unsigned char>(c)]; };
    if (std::any_of(symbol.begin(), symbol.end(), [&](char c) { return token_of(c) == kNoToken; })) return false;
    for (const char c : symbol) out.push_back(token_of(c));
    return true;
}

void AffixBpe::encode(std::string_view word, std::vector<TokenId>& out) const {
    if (parts_.ignore_merges)
        if (const auto whole = parts_.tokens.find(word); whole != parts_.tokens.end())
            return out.push_back(whole->second);
    const size_t first = out.size();
    bool after_unknown = false;
    std::string symbol;
    for (size_t at = 0; at < word.size();) {
        const size_t end = std::min(at + character_length(word[at]), word.size());
        symbol = at == 0 ? "" : parts_.continuing_prefix;
        symbol += word.substr(at, end - at);
        if (end == word.size()) symbol += parts_.end_suffix;
        at = end;
        if (const auto found = parts_.tokens.find(symbol); found != parts_.tokens.end()) {
            out.push_back(found->second);
            after_unknown = false;
        } else if (!parts_.bytes || !append_bytes(symbol, out)) {
            if (parts_.unknown != kNoToken && !(after_unknown && parts_.fuse_unknown)) out.push_back(parts_.unknown);
            after_unknown = true;
        }
    }
    out.resize(first + parts_.merges.merge(std::span(out).subspan(first)));
}

}  // namespace patchbay::text
