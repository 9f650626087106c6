#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

namespace patchbay::text {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

std::string Detokenizer::add(TokenId id) {
    std::string out;
    if (!tokenizer_->is_special(id)) {
        pending_ += tokenizer_->token_bytes(id);
        drain_utf8(pending_, out, Rest::kKeep);
    }
    return out;
}

std::string Detokenizer::finish() {
    std::string out;
    drain_utf8(pending_, out, Rest::kReplace);
    return out;
}

}  // namespace patchbay::text
