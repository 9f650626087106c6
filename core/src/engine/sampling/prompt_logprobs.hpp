// Log-probabilities of a prompt's tokens. A position of the prompt becomes a row like any other, which may sample the
// prompt's next token and nothing else: so every sampler, also one on a device, gives what that token's are.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/request/sequence_records.hpp"
#include "engine/sampling/sample_rows.hpp"
#include "engine/sampling/step_samples.hpp"
#include "patchbay/abi/sampler.h"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::engine {

struct Placed;
struct Sequence;

class PromptLogprobs {
  public:
    PromptLogprobs(const config::EngineSettings& settings, uint32_t vocab_size)
        : settings_(settings), vocab_size_(vocab_size) {}

    // Its request asks for them: its prompt is computed though it is cached, since cached tokens have none.
    void add(Sequence&, const pb_sampling_params&);
    void erase(const Sequence&);
    const pb_sampling_params* params_of(const Sequence&) const; // of the rows; null: it has none

    uint32_t max_rows() const; // of a step
    // Of the chunk [begin, end), which may be computed a second time.
    uint32_t rows(const Sequence&, uint32_t begin, uint32_t end) const;
    // Of so many tokens from `begin` on, those that come with no more rows than these.
    uint32_t tokens_within(const Sequence&, uint32_t begin, uint32_t tokens, uint32_t row_limit) const;
    void add_rows(const Sequence&, uint32_t begin, uint32_t count, SampleRows&);
    void take(const Placed&, const StepSamples&); // what they became
    // Another model computes it from now on: what is not handed out yet, with the first output, is all of that one's.
    void start_over(Sequence&);

  private:
    struct Record {
        pb_sampling_params params{};
        uint32_t noted = 1;  // prompt tokens that have theirs; the first one has none
        std::vector<uint32_t> masks; // of the step under way: (rows, words)
    };
    const config::EngineSettings& settings_;
    const uint32_t vocab_size_;
    SequenceRecords<Record> records_;
};

}  // namespace patchbay::engine
