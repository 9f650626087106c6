#include "scenario/vocabulary.hpp"

#include <algorithm>

namespace patchbay::scenario {
namespace {

class Scripted final : public text::Tokenizer {
  public:
    explicit Scripted(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

    // The longest token at each place; bytes that begin none are left out.
    Tokens encode(std::string_view text) const override {
        Tokens out;
        while (!text.empty()) {
            const auto* best = static_cast<const Vocabulary::value_type*>(nullptr);
            for (const auto& token : vocabulary_)
                if (text.starts_with(token.second) && (!best || token.second.size() > best->second.size()))
                    best = &token;
            if (best) out.push_back(best->first);
            text.remove_prefix(best ? best->second.size() : 1);
        }
        return out;
    }
    std::string_view token_bytes(TokenId id) const override {
        const auto at = vocabulary_.find(id);
        return at == vocabulary_.end() ? std::string_view() : at->second;
    }
    bool is_special(TokenId) const override { return false; }
    uint32_t vocab_size() const override { return kVocabSize; }
    std::optional<TokenId> eos() const override { return std::nullopt; } // the scenario's are the model's
    std::optional<TokenId> id_of(std::string_view text) const override {
        const auto at = std::ranges::find(vocabulary_, text, &Vocabulary::value_type::second);
        return at == vocabulary_.end() ? std::nullopt : std::optional(at->first);
    }

  private:
    Vocabulary vocabulary_;
};

}  // namespace

std::shared_ptr<const text::Tokenizer> scripted_vocabulary(const Vocabulary& vocabulary) {
    return std::make_shared<const Scripted>(vocabulary);
}

}  // namespace patchbay::scenario
