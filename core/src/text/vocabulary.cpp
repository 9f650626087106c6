#include "text/vocabulary.hpp"

#include "text/byte_alphabet.hpp"

namespace patchbay::text {

Result<Vocabulary::Entry*> Vocabulary::entry(const std::string& name, TokenId id) {
    if (id < 0 || id > kMostTokenId)
        return fail("token '" + name + "' has id " + std::to_string(id) + "; ids go from 0 to " +
                    std::to_string(kMostTokenId));
    if (static_cast<size_t>(id) >= entries_.size()) entries_.resize(static_cast<size_t>(id) + 1);
    return &entries_[static_cast<size_t>(id)];
}

Result<> Vocabulary::add(const std::string& spelled, TokenId id) {
    PB_TRY(Entry * at, entry(spelled, id));
    if (at->kind != TokenKind::kUnused)
        return fail("tokens '" + spelled + "' and '" + std::string(bytes(id)) + "' have the same id " +
                    std::to_string(id));
    const std::string bytes = spelled_bytes(spelled).value_or(spelled);
    *at = {static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(bytes.size()), TokenKind::kVocabulary};
    pool_ += bytes;
    ids_.emplace(spelled, id);
    return {};
}

Result<> Vocabulary::add_added(const std::string& content, TokenId id, TokenKind kind) {
    PB_TRY(Entry * at, entry(content, id));
    const auto known = find(content);
    if (known && *known != id)
        return fail("added token '" + content + "' has id " + std::to_string(id) + ", but the vocabulary gives it " +
                    std::to_string(*known));
    if (!known && at->kind != TokenKind::kUnused)
        return fail("added token '" + content + "' has id " + std::to_string(id) + ", which is that of '" +
                    std::string(bytes(id)) + "'");
    *at = {static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(content.size()), kind};
    pool_ += content;
    ids_.insert_or_assign(content, id);
    return {};
}

std::string_view Vocabulary::bytes(TokenId id) const {
    if (id < 0 || static_cast<size_t>(id) >= entries_.size()) return {};
    const Entry& at = entries_[static_cast<size_t>(id)];
    return std::string_view(pool_).substr(at.offset, at.length);
}

TokenKind Vocabulary::kind(TokenId id) const {
    return id < 0 || static_cast<size_t>(id) >= entries_.size() ? TokenKind::kUnused
                                                                : entries_[static_cast<size_t>(id)].kind;
}

std::optional<TokenId> Vocabulary::find(std::string_view spelled) const {
    const auto at = ids_.find(spelled);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace patchbay::text
