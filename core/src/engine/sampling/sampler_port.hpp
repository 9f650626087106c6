// The sampler in its slot: rows of a step become tokens. One on probation that fails leaves its rows to its
// predecessor.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "execution/executor.hpp"
#include "host/slot.hpp"

namespace patchbay::engine {

class LogitsReader;
struct SampleRows;
struct SamplingParams;
struct StepContext;
struct StepSamples;
class SwapJournal;

class SamplerPort {
  public:
    SamplerPort(uint32_t vocab_size, Clock&, StepContext&, SwapJournal&);
    void connect(execution::Executor& executor, LogitsReader& reader) { // before the first step
        executor_ = &executor;
        reader_ = &reader;
    }

    host::Slot& slot() { return slot_; }
    const host::Slot& slot() const { return slot_; }
    std::string text() const; // "sampler 'standard'"

    // Whether a pass of the model samples its rows itself, on the device. One on probation does so afterwards.
    bool samples_in_pass() const;
    bool is_on_device() const;
    // By the sampler, and by the one that may have to take its place again.
    Result<> accepts(const pb_sampling_params&) const;
    Result<> serves(const SamplingParams&) const; // what it has to leave to the host
    Result<> sample(const SampleRows&, const execution::StepOutput&, StepSamples&);
    // Its predecessor is back. False: it is not on probation.
    bool roll_back(const std::string& phase, const Failure& why);

  private:
    Result<> ask(const SampleRows&, std::span<float> logits, StepSamples&);

    const uint32_t vocab_size_;
    Clock& clock_;
    StepContext& context_;
    SwapJournal& journal_;
    execution::Executor* executor_ = nullptr;
    LogitsReader* reader_ = nullptr;
    host::Slot slot_;
    std::vector<float> kept_logits_; // of a sampler on probation, which may write into the others
};

}  // namespace patchbay::engine
