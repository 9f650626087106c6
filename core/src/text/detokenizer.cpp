#include "text/detokenizer.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

namespace patchbay::text {

std::string Tokenizer::decode(const std::vector<TokenId>& ids, SpecialTokens special) const {
    DecodeState state{.special = special};
    std::string out;
    for (const TokenId id : ids) decode_next(state, id, out);
    decode_rest(state, out);
    return out;
}

void Tokenizer::decode_next(DecodeState& state, TokenId id, std::string& out) const {
    if (state.special == SpecialTokens::kLeftOut && is_special(id)) return;
    state.bytes += token_bytes(id);
    drain_utf8(state.bytes, out, Rest::kKeep);
}

void Tokenizer::decode_rest(DecodeState& state, std::string& out) const {
    drain_utf8(state.bytes, out, Rest::kReplace);
}

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, std::span<const TokenId> before,
                         SpecialTokens special)
    : tokenizer_(std::move(tokenizer)), state_{.special = special} {
    read(before);
}

// Decodes the last tokens that have text; more of them as long as they say nothing, since spaces at the beginning of a
// text may be dropped.
void Detokenizer::read(std::span<const TokenId> before) {
    constexpr size_t kTokens = 8;
    const auto has_text = [&](TokenId id) {
        const bool left_out = state_.special == SpecialTokens::kLeftOut && tokenizer_->is_special(id);
        return !left_out && !tokenizer_->token_bytes(id).empty();
    };
    size_t from = before.size();
    for (size_t count = kTokens; from > 0 && !continues_text_; count *= 2) {
        for (size_t found = 0; from > 0 && found < count;) found += has_text(before[--from]);
        state_ = {.special = state_.special};
        std::string out;
        for (const TokenId id : before.subspan(from)) tokenizer_->decode_next(state_, id, out);
        continues_text_ = !out.empty();
    }
    DecodeState end = state_;
    tokenizer_->decode_rest(end, said_);
}

// Drops what is in said_ from the front, as far as it comes again. What was only how the text would have ended does
// not, as U+FFFD for a character that is now complete.
std::string Detokenizer::without_said(std::string text) {
    if (said_.empty() || text.empty()) return text;
    const auto at = std::mismatch(text.begin(), text.end(), said_.begin(), said_.end()).first;
    auto same = static_cast<size_t>(at - text.begin());
    if (same == text.size() || same == said_.size()) {
        said_.erase(0, same);
    } else {
        said_.clear();
        while (same > 0 && continues_character(text[same])) --same; // within a character
    }
    return text.substr(same);
}

std::string Detokenizer::add(TokenId id) {
    std::string out;
    tokenizer_->decode_next(state_, id, out);
    return without_said(std::move(out));
}

std::string Detokenizer::finish() {
    std::string out;
    tokenizer_->decode_rest(state_, out);
    out = without_said(std::move(out));
    state_ = {.special = state_.special};
    said_.clear();
    return out;
}

}  // namespace patchbay::text
