// The requests of one repeat: prompts, lengths, arrival times, seeds. The same for every variant, and a pure function
// of the specification, the seed and the repeat.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/input_files.hpp"
#include "experiment/spec.hpp"
#include "experiment/windows.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::experiment {

class Draws;
class LengthSource;

struct PlannedRequest {
    std::vector<text::TokenId> prompt;
    engine::SamplingParams sampling; // with max_tokens and seed set
    uint32_t output_tokens = 0;      // that it will make; 0: not known
    uint64_t arrival_ns = 0;         // since the start of the run
    uint64_t deadline_ns = 0;        // likewise; 0: none
    uint32_t tenant = 0;
    int32_t priority = 0;
};

struct Clipping { // what had to be cut, in requests and tokens
    uint32_t prompts = 0, outputs = 0;
    uint64_t prompt_tokens = 0, output_tokens = 0;
};

struct Workload {
    std::vector<PlannedRequest> requests; // by arrival
    Clipping clipped;
};

struct WorkloadLimits { // of what all variants can take
    uint32_t max_model_len = 0, vocab_size = 0;
};

// Reads files and tokenises once; then makes the workload of any repeat.
class WorkloadSource {
  public:
    // The tokenizer may be null where no text is used. Repeats and their seed decide the windows of a trace.
    static Result<WorkloadSource> open(const WorkloadSpec&, std::shared_ptr<const text::Tokenizer>, WorkloadLimits,
                                       uint32_t repeats = 1, uint64_t seed = 0);
    Workload repeat(uint64_t seed, uint32_t repeat) const;
    // `count` requests of the same kind that no repeat has, all arriving at once.
    std::vector<PlannedRequest> warmup(uint64_t seed, uint32_t count) const;

    // Of the repeats those that share no rows of a trace; none: nothing is shared.
    std::optional<uint32_t> independent() const;

  private:
    WorkloadSource() = default;
    std::span<const TraceRow> window(uint32_t repeat) const;

    std::vector<text::TokenId> prompt_of(const Draws&, const std::vector<uint32_t>& order, uint32_t i,
                                         uint32_t wanted) const;

    WorkloadSpec spec_;
    WorkloadLimits limits_;
    uint32_t count_ = 0;
    std::vector<std::vector<text::TokenId>> prompts_; // of a JSONL file
    std::vector<text::TokenId> text_;                 // of a text file
    std::vector<text::TokenId> plain_ids_;            // ids that random prompts are made of
    std::vector<TraceRow> trace_;
    WindowPlan windows_;                              // of the trace
    std::shared_ptr<const LengthSource> prompt_lengths_, output_lengths_;
};

}  // namespace patchbay::experiment
