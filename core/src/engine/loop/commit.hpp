// A step that is back: its tokens become output, drafts are accepted, searches choose, and deltas are handed out.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/placement/placed.hpp"
#include "engine/request/ids.hpp"

namespace patchbay::engine {

class Aborts;
class BeamSearches;
class Branches;
class Constraints;
class DraftFeedback;
class InFlightSteps;
class Lifecycle;
class Outputs;
class Pooling;
class PromptLogprobs;
class SamplerPort;
class Sequences;
class Siblings;
struct StepContext;
struct StepSamples;

class Commit {
  public:
    struct Parts {
        Sequences& sequences;
        Lifecycle& lifecycle;
        Outputs& outputs;
        Constraints& constraints;
        PromptLogprobs& prompt_logprobs;
        Pooling& pooling;
        Siblings& siblings;
        BeamSearches& beams;
        Branches& branches;
        DraftFeedback& drafting;
        InFlightSteps& in_flight;
        const SamplerPort& sampler;
        const Aborts& aborts;
        uint32_t vocab_size;
        bool model_computes; // else an invalid token does no harm to a step in flight
        StepContext& context;
    };
    explicit Commit(const Parts& parts) : p_(parts) {}

    // hidden: states that the step's batch wanted.
    void commit(std::span<const Placed> step, const StepSamples&, std::span<const float> hidden = {});
    // Those of sequences that go on first. Callbacks may add and abort requests.
    void publish(std::span<const Placed> step);

  private:
    void fill_placeholders(std::span<const Placed> step, size_t item, const StepSamples&);
    void count_drafts(std::span<const Placed> step, size_t item, uint32_t accepted);
    void pool(Sequence&); // its chunk is computed
    void take_beam(const Placed&, const StepSamples&);
    bool append(Sequence&, TokenId, uint32_t row, const StepSamples&); // false: it ended with it

    const Parts p_;
    std::vector<Sequence*> ended_beams_; // in the step
};

}  // namespace patchbay::engine
