#include "text/vocabulary.hpp"

#include "base/refusals.hpp"

namespace patchbay::text {

Result<Vocabulary::Entry*> Vocabulary::entry(const std::string& name, TokenId id) {
    if (id < 0 || id > kMaxTokenId)
        return invalid("token '" + name + "' has id " + std::to_string(id) + "; ids go from 0 to " +
                       std::to_string(kMaxTokenId));
    if (name.size() > kMaxTokenBytes)
        return invalid("token " + std::to_string(id) + " of " + std::to_string(name.size()) + " bytes is longer than " +
                       std::to_string(kMaxTokenBytes));
    if (static_cast<size_t>(id) >= entries_.size()) entries_.resize(static_cast<size_t>(id) + 1);
    return &entries_[static_cast<size_t>(id)];
}

Vocabulary::Text Vocabulary::keep(std::string_view text) {
    const Text out{static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(text.size())};
    pool_ += text;
    return out;
}

Result<> Vocabulary::add(const std::string& spelled, TokenId id) {
    PB_TRY(Entry * at, entry(spelled, id));
    if (at->kind != TokenKind::kUnused)
        return invalid("tokens '" + spelled + "' and '" + std::string(this->spelled(id)) + "' have the same id " +
                       std::to_string(id));
    if (!ids_.emplace(spelled, id).second)
        return invalid("token '" + spelled + "' has the ids " + std::to_string(*find(spelled)) + " and " +
                       std::to_string(id));
    *at = {keep(spelled), {}, TokenKind::kVocabulary};
    return {};
}

Result<> Vocabulary::add_added(const std::string& content, TokenId id, TokenKind kind) {
    PB_TRY(Entry * at, entry(content, id));
    const auto found = find(content);
    if (found && *found != id)
        return invalid("added token '" + content + "' has id " + std::to_string(id) + ", but the vocabulary gives it " +
                       std::to_string(*found));
    if (!found && at->kind != TokenKind::kUnused)
        return invalid("added token '" + content + "' has id " + std::to_string(id) + ", which is that of '" +
                       std::string(spelled(id)) + "'");
    *at = {keep(content), {}, kind};
    ids_.insert_or_assign(content, id);
    return {};
}

void Vocabulary::set_bytes(TokenId id, std::string_view bytes) {
    entries_[static_cast<size_t>(id)].bytes = keep(bytes);
}

const Vocabulary::Entry* Vocabulary::known(TokenId id) const {
    return id < 0 || static_cast<size_t>(id) >= entries_.size() ? nullptr : &entries_[static_cast<size_t>(id)];
}

std::string_view Vocabulary::spelled(TokenId id) const {
    const Entry* at = known(id);
    return at ? std::string_view(pool_).substr(at->spelled.offset, at->spelled.length) : std::string_view();
}

std::string_view Vocabulary::bytes(TokenId id) const {
    const Entry* at = known(id);
    return at ? std::string_view(pool_).substr(at->bytes.offset, at->bytes.length) : std::string_view();
}

TokenKind Vocabulary::kind(TokenId id) const {
    const Entry* at = known(id);
    return at ? at->kind : TokenKind::kUnused;
}

std::optional<TokenId> Vocabulary::find(std::string_view spelled) const {
    const auto at = ids_.find(spelled);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace patchbay::text
