// What becomes of sequences when no KV is good for anything any more, because what computes it was exchanged: all wait,
// before those that came later, and are computed anew from their tokens. Nothing is cached.
#pragma once

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

struct EngineFacts;
class Preemption;
class PrefixHints;
class PromptLogprobs;
class Sequences;

class Recomputation {
  public:
    Recomputation(Sequences& sequences, kv::KvCache& kv, PrefixHints& hints, Preemption& preemption,
                  PromptLogprobs& prompt_logprobs, const EngineFacts& facts)
        : sequences_(sequences), kv_(kv), hints_(hints), preemption_(preemption), prompt_logprobs_(prompt_logprobs),
          facts_(facts) {}

    // Between steps, or after a step that failed. The facts must already be those of the new model and attention.
    void recompute_all();

  private:
    Sequences& sequences_;
    kv::KvCache& kv_;
    PrefixHints& hints_;
    Preemption& preemption_;
    PromptLogprobs& prompt_logprobs_;
    const EngineFacts& facts_;
};

}  // namespace patchbay::engine
