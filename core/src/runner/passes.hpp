// Forward passes of a ModelRunner's model, one after the other, and what comes of each: logits, sampled rows, hidden
// states. [step thread]
#pragma once
#include <span>

#include "runner/call_times.hpp"
#include "runner/device_sampling.hpp"
#include "runner/device_steps.hpp"
#include "runner/graph_use.hpp"
#include "runner/graphed_pass.hpp"
#include "runner/hidden_output.hpp"
#include "runner/logits_output.hpp"

namespace patchbay::runner {

struct PassReport { // of one pass
    CallTimes times;
    GraphUse graph;
};

class Passes {
  public:
    explicit Passes(const PassContext& context);
    Passes(const Passes&) = delete;
    Passes& operator=(const Passes&) = delete;

    // Once pages are there. reserve: memory for the inputs of passes of these sizes, before there are graphs.
    Result<> reserve(const PassInputs::Sizes& sizes) { return pass_.inputs().reserve(sizes); }
    Result<> reserve_samples(uint32_t rows, uint32_t max_logprobs) { return sampling_.reserve(rows, max_logprobs); }
    Result<> make_graphs(const RunnerSettings&); // and captures them, if that is to be at load

    // On a simulated machine: what its host does for a step, whatever passes the step has.
    void pass_host_time() { steps_.pass_host_time(); }
    // One forward pass. Logits of the batch's logit rows, (rows, vocab) f32 in host memory, valid until the next call.
    // On a device that computes nothing there are none, and the time that the device charges passes on the clock.
    // A batch without tokens is its copies alone.
    Result<std::span<float>> forward(const Batch&);
    // The same, and its rows sampled in the same step; logits stay where they are. Valid until the next call but one.
    Result<SampledRows> forward(const Batch&, const SampleCall&);
    // Samples from logits that forward() gave for its latest batch, again if need be.
    Result<SampledRows> sample(std::span<const float> logits, const SampleCall&);
    // The halves of forward() where steps can be in flight, at most two: wait() ends what submit() began, the oldest
    // first. Ids below 0 of a batch are tokens that the step in flight samples: −1 of its row 0, −2 of its row 1.
    bool can_submit() const { return steps_.can_submit(); }
    Result<> submit(const Batch&, const SampleCall*); // null: nothing is sampled
    bool any_in_flight() const { return steps_.any_in_flight(); }
    Result<SampledRows> wait();
    void abandon(); // waits for what is in flight; its results are lost

    // What the latest batch wanted of them, one range after the other: (tokens, hidden_size) f32 in host memory, valid
    // until the next call. Of steps that are not in flight.
    std::span<const float> hidden_states() const { return hidden_.states(); }
    uint32_t hidden_size() const { return hidden_.width(c_.model.facts()); } // 0: the model does not give them
    const PassReport& latest() const { return latest_; }
    PassGraphs& graphs() { return pass_.graphs(); }
    const PassGraphs& graphs() const { return pass_.graphs(); }

  private:
    enum class End { kWait, kSubmit };
    // What run() leaves: logits where forward() leaves them, unless they were sampled from.
    Result<std::span<float>> pass(const Batch&, const SampleCall*, End);
    Result<std::span<float>> run(const Batch&, size_t rows, const GraphChoice&, const SampleCall*, End);
    Result<std::span<float>> copy_only(const Batch&);
    Result<> compute(const Batch&, size_t rows, const GraphChoice&); // inside a step of the device

    const PassContext c_;
    PassReport latest_;
    GraphedPass pass_;
    DeviceSteps steps_;
    DeviceSampling sampling_;
    HiddenOutput hidden_;
    LogitsOutput logits_;
};

}  // namespace patchbay::runner
