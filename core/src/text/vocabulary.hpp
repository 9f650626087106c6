// Tokens by id and by spelling: the model's vocabulary and the tokens that were added to it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::text {

constexpr TokenId kMostTokenId = (1 << 22) - 1; // bounds the table that a hostile file can ask for

struct TextHash : std::hash<std::string_view> { // lets a map of strings be asked with a view
    using is_transparent = void;
};

enum class TokenKind : uint8_t { kUnused, kVocabulary, kAdded, kSpecial };

class Vocabulary {
  public:
    // spelled: in the byte alphabet. A token with other characters stands for its own UTF-8.
    Result<> add(const std::string& spelled, TokenId);
    // An added token stands for its content; it may have an entry in the vocabulary already.
    Result<> add_added(const std::string& content, TokenId, TokenKind);

    std::string_view bytes(TokenId) const; // empty for an unknown id
    TokenKind kind(TokenId) const;
    std::optional<TokenId> find(std::string_view spelled) const;
    uint32_t size() const { return static_cast<uint32_t>(entries_.size()); } // highest id + 1

  private:
    struct Entry {
        uint32_t offset = 0, length = 0; // in pool_
        TokenKind kind = TokenKind::kUnused;
    };
    Result<Entry*> entry(const std::string& name, TokenId);

    std::string pool_;
    std::vector<Entry> entries_;
    std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> ids_;
};

}  // namespace patchbay::text
