#include "text/detokenizer.hpp"
#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

namespace patchbay::text {

std::string Tokenizer::decode(const std::vector<TokenId>& ids) const {
    DecodeState state;
    std::string out;
    for (const TokenId id : ids) decode_next(state, id, out);
    decode_rest(state, out);
    return out;
}

void Tokenizer::decode_next(DecodeState& state, TokenId id, std::string& out) const {
    if (is_special(id)) return;
    state.bytes += token_bytes(id);
    drain_utf8(state.bytes, out, Rest::kKeep);
}

void Tokenizer::decode_rest(DecodeState& state, std::string& out) const {
    drain_utf8(state.bytes, out, Rest::kReplace);
}

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

std::string Detokenizer::add(TokenId id) {
    std::string out;
    tokenizer_->decode_next(state_, id, out);
    return out;
}

std::string Detokenizer::finish() {
    std::string out;
    tokenizer_->decode_rest(state_, out);
    state_ = {};
    return out;
}

}  // namespace patchbay::text
