#include "text/pipeline_tokenizer.hpp"

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "text/utf8.hpp"

namespace patchbay::text {
namespace {

TextBegin begin_of(TextBegin whole, size_t at) { return at == 0 ? whole : TextBegin::kNo; }

}  // namespace

Result<> PipelineTokenizer::Parts::add(std::vector<AddedToken> added) {
    constexpr size_t kMaxBytes = 1u << 20; // of all together: each takes a node of the search tree
    size_t bytes = 0;
    std::vector<AddedToken> raw, normalized;
    for (AddedToken& token : added) {
        if ((bytes += token.content.size()) > kMaxBytes)
            return invalid("added tokens of more than " + std::to_string(kMaxBytes) + " bytes together");
        PB_CHECK(
            vocabulary.add_added(token.content, token.id, token.special ? TokenKind::kSpecial : TokenKind::kAdded));
        std::string storage;
        if (token.normalized) token.content = normalizer.apply(token.content, TextBegin::kYes, storage);
        (token.normalized ? normalized : raw).push_back(std::move(token));
    }
    raw_added = AddedTokens(std::move(raw));
    normalized_added = AddedTokens(std::move(normalized));
    return {};
}

Result<std::shared_ptr<const Tokenizer>> PipelineTokenizer::create(Parts parts) {
    Vocabulary& vocabulary = parts.vocabulary;
    for (const auto* ids : {&parts.prefix, &parts.suffix})
        for (const TokenId id : *ids)
            if (vocabulary.kind(id) == TokenKind::kUnused)
                return invalid("post_processor: id " + std::to_string(id) + " is not in the vocabulary");
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id) {
        const TokenKind kind = vocabulary.kind(id);
        if (kind == TokenKind::kUnused) continue;
        const std::string spelled(vocabulary.spelled(id));
        // Byte-level, an added token stands for its own text, also where its letters lie in the byte alphabet.
        const bool own = parts.decoder.byte_level() && kind != TokenKind::kVocabulary;
        const std::string bytes = own ? spelled : parts.decoder.token_bytes(spelled, Decoder::Place::kLater);
        if (bytes.size() > Decoder::kMaxBytes)
            return invalid("token " + std::to_string(id) + " ('" + spelled.substr(0, 40) + "') stands for more than " +
                           std::to_string(Decoder::kMaxBytes) + " bytes");
        vocabulary.set_bytes(id, bytes);
    }
    return std::shared_ptr<const Tokenizer>(new PipelineTokenizer(std::move(parts)));
}

std::vector<TokenId> PipelineTokenizer::encode(std::string_view text) const {
    std::vector<TokenId> out = parts_.prefix;
    const std::vector<TokenId> inside = encode_inside(text);
    out.insert(out.end(), inside.begin(), inside.end());
    out.insert(out.end(), parts_.suffix.begin(), parts_.suffix.end());
    return out;
}

std::vector<TokenId> PipelineTokenizer::encode_inside(std::string_view text) const {
    std::vector<TokenId> out;
    out.reserve(text.size() / 3);
    for (const auto& [span, id] : parts_.raw_added.split(text)) {
        if (id == AddedTokens::kText)
            encode_bytes(text.substr(span.begin, span.end - span.begin), begin_of(TextBegin::kYes, span.begin), out);
        else
            out.push_back(id);
    }
    return out;
}

// Bytes that are not UTF-8: a byte-level vocabulary can spell them, so they are words of their own, because neither the
// normaliser nor a pattern is defined on them. Others read each ill-formed part as U+FFFD.
void PipelineTokenizer::encode_bytes(std::string_view text, TextBegin begin, std::vector<TokenId>& out) const {
    if (!parts_.pre_tokenizer.byte_level()) {
        if (valid_prefix(text) == text.size()) return encode_valid(text, begin, out);
        std::string bytes(text), repaired;
        drain_utf8(bytes, repaired, Rest::kReplace);
        return encode_valid(repaired, begin, out);
    }
    for (size_t at = 0; at < text.size();) {
        const size_t good = valid_prefix(text.substr(at));
        encode_valid(text.substr(at, good), begin_of(begin, at), out);
        at += good;
        const size_t bad = at;
        while (at < text.size()) {
            const Utf8Step step = utf8_step(text.substr(at));
            if (step.what == Utf8::kCharacter) break;
            at += step.bytes;
        }
        if (at > bad) parts_.model->encode(text.substr(bad, at - bad), out);
    }
}

void PipelineTokenizer::encode_valid(std::string_view text, TextBegin begin, std::vector<TokenId>& out) const {
    std::string storage;
    text = parts_.normalizer.apply(text, begin, storage);
    for (const auto& [span, id] : parts_.normalized_added.split(text)) {
        if (id != AddedTokens::kText) {
            out.push_back(id);
            continue;
        }
        PreTokenizer::Words words;
        parts_.pre_tokenizer.split(text.substr(span.begin, span.end - span.begin), begin_of(begin, span.begin), words);
        for (const std::string_view word : words.words) parts_.model->encode(word, out);
    }
}

std::string_view PipelineTokenizer::token_bytes(TokenId id) const { return parts_.vocabulary.bytes(id); }
bool PipelineTokenizer::is_special(TokenId id) const { return parts_.vocabulary.kind(id) == TokenKind::kSpecial; }

void PipelineTokenizer::decode_next(DecodeState& state, TokenId id, std::string& out) const {
    const TokenKind kind = parts_.vocabulary.kind(id);
    const bool left_out = kind == TokenKind::kSpecial && state.special == SpecialTokens::kLeftOut;
    if (left_out || kind == TokenKind::kUnused) return;
    const std::string_view bytes = parts_.vocabulary.bytes(id);
    if (parts_.decoder.byte_level()) state.begun = true;
    parts_.decoder.next(state, parts_.vocabulary.spelled(id), bytes, out);
}

void PipelineTokenizer::decode_rest(DecodeState& state, std::string& out) const { parts_.decoder.rest(state, out); }

}  // namespace patchbay::text
