// The tokens of a model as byte strings, sorted into a tree, for masks. Immutable; one for each tokenizer and model.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace patchbay::grammar {

using text::TokenId;

// Tokens by their bytes. Nodes in preorder: the first child of n is n + 1, its next sibling is end(n).
class TokenTree {
  public:
    explicit TokenTree(const std::vector<std::string>& bytes_by_id); // tokens without bytes are left out

    uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); } // nodes; the first one is the root
    uint8_t byte(uint32_t n) const { return bytes_[n]; }
    uint32_t depth(uint32_t n) const { return depths_[n]; } // of the root: 0
    uint32_t end(uint32_t n) const { return ends_[n]; }
    uint32_t max_depth() const { return max_depth_; }
    TokenId first_token(uint32_t n) const { return ids_[first_[n]]; } // at a node or below it
    std::span<const TokenId> tokens(uint32_t n) const { return {ids_.data() + first_[n], first_[n + 1] - first_[n]}; }

  private:
    std::vector<uint8_t> bytes_;
    std::vector<uint16_t> depths_;
    std::vector<uint32_t> ends_, first_; // first_: in ids_, one more than nodes
    std::vector<TokenId> ids_;
    uint32_t max_depth_ = 0;
};

class Vocabulary {
  public:
    // `size`: of the model's logits; tokens past it are left out. Special tokens, and those that end a text, have no
    // bytes here.
    static std::shared_ptr<const Vocabulary> of(const text::Tokenizer&, uint32_t size,
                                                std::span<const TokenId> end_tokens = {});
    // later: the bytes of a token inside a text, by id, at most 4096 each; first: at its begin, empty if they are the
    // same.
    Vocabulary(std::vector<std::string> later, std::vector<std::string> first = {});

    uint32_t size() const { return static_cast<uint32_t>(later_.size()); }
    uint32_t words() const { return (size() + 31) / 32; } // of a mask
    enum class Place { kFirst, kLater };
    std::string_view bytes(TokenId t, Place p) const {
        return p == Place::kFirst && own_first() ? first_[t] : later_[t];
    }
    const TokenTree& tree(Place p) const { return p == Place::kFirst && own_first() ? *first_tree_ : tree_; }
    bool own_first() const { return first_tree_ != nullptr; } // tokens lose a space at the beginning of a text

  private:
    std::vector<std::string> later_, first_;
    TokenTree tree_;
    std::unique_ptr<const TokenTree> first_tree_;
};

}  // namespace patchbay::grammar
