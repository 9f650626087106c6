// BPE over characters whose vocabulary marks where a word ends ("the</w>": GPT, XLM) or goes on ("##e"). Such words are
// parted by white space, which they have lost, so they are short.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/byte_tokens.hpp"
#include "text/merge_table.hpp"
#include "text/subword_model.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {

class AffixBpe final : public SubwordModel {
  public:
    struct Parts {
        MergeTable merges{0};
        std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> tokens; // as they are spelled
        std::string continuing_prefix, end_suffix;                                  // either may be empty
        std::optional<ByteTokens> bytes;                                            // byte_fallback
        TokenId unknown = kNoToken; // kNoToken: unknown characters are left out
        bool fuse_unknown = false;  // a run of them is one token
        bool ignore_merges = false; // a word that is a token, spelled without marks, is not merged
    };
    explicit AffixBpe(Parts parts) : parts_(std::move(parts)) {}
    void encode(std::string_view word, std::vector<TokenId>& out) const override;

  private:
    bool append_bytes(std::string_view symbol, std::vector<TokenId>& out) const; // false: some have no token
    Parts parts_;
};

}  // namespace patchbay::text
