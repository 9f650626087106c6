#include "text/byte_level_tokenizer.hpp"

#include "text/utf8.hpp"

namespace patchbay::text {

std::vector<TokenId> ByteLevelTokenizer::encode(std::string_view text) const {
    std::vector<TokenId> out = parts_.prefix;
    out.reserve(out.size() + text.size() / 3 + parts_.suffix.size());
    for (const auto& [span, id] : parts_.raw_added.split(text)) {
        if (id == AddedTokens::kText)
            encode_raw(text.substr(span.begin, span.end - span.begin), out);
        else
            out.push_back(id);
    }
    out.insert(out.end(), parts_.suffix.begin(), parts_.suffix.end());
    return out;
}

// Bytes that are not UTF-8 are words of their own: neither the normaliser nor a pattern is defined on them, and a
// byte-level vocabulary can spell them.
void ByteLevelTokenizer::encode_raw(std::string_view text, std::vector<TokenId>& out) const {
    while (!text.empty()) {
        const size_t good = valid_prefix(text);
        encode_valid(text.substr(0, good), out);
        text.remove_prefix(good);
        size_t bad = 0;
        while (bad < text.size()) {
            const Utf8Step step = utf8_step(text.substr(bad));
            if (step.what == Utf8::kCharacter) break;
            bad += step.bytes;
        }
        parts_.bpe.encode(text.substr(0, bad), out);
        text.remove_prefix(bad);
    }
}

void ByteLevelTokenizer::encode_valid(std::string_view text, std::vector<TokenId>& out) const {
    // Normalisation works with 32-bit lengths; nothing that long is a prompt, so it passes as it is.
    std::string storage;
    if (text.size() < INT32_MAX / 2) text = parts_.normalizer.apply(text, storage);
    for (const auto& [span, id] : parts_.normalized_added.split(text)) {
        if (id != AddedTokens::kText) {
            out.push_back(id);
            continue;
        }
        PreTokenizer::Words words;
        parts_.pre_tokenizer.split(text.substr(span.begin, span.end - span.begin), words);
        for (const std::string_view word : words.words) parts_.bpe.encode(word, out);
    }
}

std::string_view ByteLevelTokenizer::token_bytes(TokenId id) const { return parts_.vocabulary.bytes(id); }
bool ByteLevelTokenizer::is_special(TokenId id) const { return parts_.vocabulary.kind(id) == TokenKind::kSpecial; }

std::string ByteLevelTokenizer::decode(const std::vector<TokenId>& ids) const {
    std::string bytes, out;
    for (const TokenId id : ids)
        if (!is_special(id)) bytes += token_bytes(id);
    drain_utf8(bytes, out, Rest::kReplace);
    return out;
}

}  // namespace patchbay::text
