// Tokens become output: text, log-probabilities, stop conditions, and the delta of the step.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/output.hpp"
#include "engine/sampling/sample_rows.hpp"

namespace patchbay::text {
class Tokenizer;
}

namespace patchbay::engine {

struct SamplingParams;
struct Sequence;
struct StepContext;
struct StepSamples;

struct Ending {
    FinishReason reason;
    std::string why; // the stop string or token that matched, or the error's text
    StatusCode code = StatusCode::kInternal; // of an error
};

class Outputs {
  public:
    // tokenizer: null: ids only. A sequence ends at max_model_len tokens.
    Outputs(std::shared_ptr<const text::Tokenizer> tokenizer, const std::vector<TokenId>& eos, uint32_t max_model_len,
            Surprisals&, StepContext&);

    void begin(Sequence&) const; // an empty output
    // Appends a token of a row. `must_end`: nothing can follow it. Says so if the sequence ends with it.
    std::optional<Ending> append(Sequence&, TokenId, size_t row, const StepSamples&, bool must_end);
    // Closes the delta: text that is held back, and what is said of the output as a whole.
    void finish(Sequence&, Ending) const;
    // What the step under way appended is dropped, and what the output ends with is the text that was held back before.
    void take_back(Sequence&) const;
    void hand_out(Sequence&) const; // the delta of one that goes on; then it is empty

  private:
    void close(Sequence&) const;
    bool is_end(const SamplingParams&, TokenId) const;
    bool is_own_end(const SamplingParams&, TokenId) const;

    const std::shared_ptr<const text::Tokenizer> tokenizer_;
    const std::vector<TokenId>& eos_;
    const uint32_t max_model_len_;
    Surprisals& surprisals_;
    StepContext& context_;
};

}  // namespace patchbay::engine
