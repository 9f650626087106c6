// Structured output: a sequence that has a grammar samples among the tokens that the grammar allows.
#pragma once
#include <memory>

#include "engine/request/sequence_records.hpp"
#include "engine/sampling/row_constraint.hpp"
#include "grammar/compile.hpp"

namespace patchbay::engine {

struct StepContext;
struct StepReport;

class StructuredOutput final : public RowConstraint {
  public:
    // tokenizer: may be null, and then there are no grammars.
    StructuredOutput(std::shared_ptr<const text::Tokenizer> tokenizer, const std::vector<TokenId>& eos,
                     uint32_t vocab_size, Clock&, StepContext&);

    // known: what it gave for the same before; that of another engine, or null, is compiled anew. [any thread]
    Result<std::shared_ptr<grammar::Grammar>> compile(const grammar::StructuredOutputs&,
                                                      std::shared_ptr<grammar::Grammar> known = nullptr);
    void add(Sequence&, std::shared_ptr<grammar::Grammar>); // its output's, from now on
    void report_compiled(StepReport&);                      // for requests since the step before

    bool applies(const Sequence&) const override;
    void mask(const PathRows&, MaskWords& memory, Unsatisfiable&) override;
    Result<> accept(const Sequence&, TokenId, const std::string& sampler) override;
    bool is_complete(const Sequence&) const override;
    uint32_t count_allowed(const Sequence&, std::span<const TokenId> drafts) override;
    void inherit(const Sequence& from, const Sequence& to) override;
    void erase(const Sequence&) override;

  private:
    struct Record {
        std::unique_ptr<grammar::Matcher> matcher; // of the output so far
        std::vector<TokenId> end_tokens;           // that are allowed where the output is complete
    };
    const std::vector<TokenId>& eos_;
    const uint32_t vocab_size_;
    Clock& clock_;
    StepContext& context_;
    std::unique_ptr<grammar::GrammarCache> grammars_; // null: there is no tokenizer
    grammar::GrammarCache::Counts reported_;
    SequenceRecords<Record> records_;
};

}  // namespace patchbay::engine
