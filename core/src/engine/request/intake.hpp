// The way in: a request is checked against everything that will have to serve it, and becomes sequences.
#pragma once
#include <memory>

#include "engine/groups/beams.hpp"
#include "engine/groups/siblings.hpp"
#include "engine/output/pooling.hpp"
#include "engine/request/validation.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/sampling/structured_output.hpp"
#include "engine/sampling/token_rules.hpp"
#include "execution/executor.hpp"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::engine {

class Admission;
class SamplerPort;

class Intake {
  public:
    struct Parts {
        const config::EngineSettings& settings;
        uint32_t vocab_size, max_model_len;
        bool synthetic_acceptance;
        bool has_tokenizer;
        Sequences& sequences;
        Siblings& siblings;
        BeamSearches& beams;
        Admission& admission;
        const Outputs& outputs;
        SamplerPort& sampler;
        const execution::Executor& executor;
        TokenRules& token_rules;
        StructuredOutput& structured_output;
        Constraints& constraints;
        PromptLogprobs& prompt_logprobs;
        Pooling& pooling;
        Clock& clock;
    };
    explicit Intake(const Parts& parts) : p_(parts) {}

    // The id of its first sequence; those of further outputs follow. A refusal changes nothing.
    Result<RequestId> add(Request);

  private:
    struct Checked {
        std::shared_ptr<grammar::Grammar> grammar; // null: there is none
        std::shared_ptr<const TokenRules::Rules> rules; // null: of what is pooled
        pb_sampling_params prompt_params{};        // for prompt_logprobs
    };
    Result<> check_prompt(const Request&) const;
    Result<> check_length(const Request&) const;
    Result<> check_pooling(Request&) const;
    Result<> check_room(const Request&, uint64_t now_ns) const;
    Result<Checked> check(Request&, uint64_t now_ns);
    std::unique_ptr<Sequence> make(std::shared_ptr<const Request>, uint32_t index);
    void add_siblings(Sequence& first);
    bool model_computes() const { return p_.executor.tokens() == execution::TokenSource::kModel; }

    const Parts p_;
    RequestId next_id_ = 1;
};

}  // namespace patchbay::engine
