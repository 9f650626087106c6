// Tokens that a request forbids by itself: all but allowed_token_ids, the ends of bad words, and what stops the output
// before min_tokens.
#pragma once
#include <memory>

#include "base/result.hpp"
#include "engine/request/sequence_records.hpp"
#include "engine/sampling/row_constraint.hpp"

namespace patchbay::text {
class Tokenizer;
}

namespace patchbay::engine {

struct SamplingParams;

struct RequestTokenRules { // of a request
    MaskWords allowed;     // a bit for each token that may be sampled; empty: all
    MaskWords before_stop; // the same before min_tokens; empty: no other
    std::vector<std::vector<TokenId>> bad_words; // of several tokens
    uint64_t reader = 0; // the number of the TokenRules that read them

    bool empty() const { return allowed.empty() && before_stop.empty() && bad_words.empty(); }
};

class TokenRules final : public RowConstraint {
  public:
    using Rules = RequestTokenRules;
    // tokenizer: may be null.
    TokenRules(std::shared_ptr<const text::Tokenizer> tokenizer, const std::vector<TokenId>& eos, uint32_t vocab_size);

    // Refuses what leaves no token. known: what this gave for the same before; of another one, or null: they are read
    // again. [any thread]
    Result<std::shared_ptr<const Rules>> read(const SamplingParams&,
                                              std::shared_ptr<const Rules> known = nullptr) const;
    void add(const Sequence&, std::shared_ptr<const Rules>);
    // What its row may become that makes output token `made` + 1, but for bad words; null: any token.
    const uint32_t* mask(const Sequence&, uint32_t made) const;

    bool applies(const Sequence&) const override; // it has bad words
    void mask(const PathRows&, MaskWords& memory, Unsatisfiable&) override;
    void inherit(const Sequence& from, const Sequence& to) override;
    void erase(const Sequence&) override;

  private:
    Result<Rules> read_all(const SamplingParams&) const;

    const uint64_t number_; // that no other one has
    const std::shared_ptr<const text::Tokenizer> tokenizer_;
    const std::vector<TokenId>& eos_;
    const uint32_t vocab_size_;
    SequenceRecords<std::shared_ptr<const Rules>> records_; // shared by siblings
};

}  // namespace patchbay::engine
