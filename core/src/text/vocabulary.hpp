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

constexpr TokenId kMaxTokenId = (1 << 22) - 1; // bounds the table that a hostile file can cause
constexpr size_t kMaxTokenBytes = 1024;        // of one token's spelling: bounds what is searched at every position

struct TextHash : std::hash<std::string_view> { // lets a map of strings be asked with a view
    using is_transparent = void;
};

enum class TokenKind : uint8_t { kUnused, kVocabulary, kAdded, kSpecial };

class Vocabulary {
  public:
    // spelled: as the file has it, such as "Ġthe", "▁the" or "<0x0A>".
    Result<> add(const std::string& spelled, TokenId);
    // An added token is spelled by its content; it may have an entry in the vocabulary already.
    Result<> add_added(const std::string& content, TokenId, TokenKind);
    void set_bytes(TokenId, std::string_view bytes); // what the token stands for in text; a known id, once

    std::string_view spelled(TokenId) const; // empty for an unknown id
    std::string_view bytes(TokenId) const;   // likewise, and before set_bytes()
    TokenKind kind(TokenId) const;
    std::optional<TokenId> find(std::string_view spelled) const;
    uint32_t size() const { return static_cast<uint32_t>(entries_.size()); } // highest id + 1

  private:
    struct Text { // in pool_
        uint32_t offset = 0, length = 0;
    };
    struct Entry {
        Text spelled, bytes;
        TokenKind kind = TokenKind::kUnused;
    };
    Result<Entry*> entry(const std::string& name, TokenId);
    Text keep(std::string_view);
    const Entry* known(TokenId) const;

    std::string pool_; // at most twice a file's size, so 32 bits are enough
    std::vector<Entry> entries_;
    std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> ids_;
};

}  // namespace patchbay::text
