// A model on a device: its weights, the memory of its KV, and its passes, each a part of its own. The engine's only way
// to logits; owns the device, model and attention components.
#pragma once
#include <memory>

#include "base/result.hpp"
#include "runner/model_swap.hpp"
#include "runner/passes.hpp"
#include "runner/runner_settings.hpp"

namespace patchbay::runner {

class ModelRunner {
  public:
    static Result<std::unique_ptr<ModelRunner>> create(host::Device, host::Model, host::Attention,
                                                       const weights::WeightSource&, const RunnerSettings&,
                                                       Clock&, DraftModel* draft = nullptr);
    ~ModelRunner();

    const OpenDevice& device() const { return *device_; }
    const ModelInUse& model() const { return model_; }
    const LoadedWeights& weights() const { return weights_.in_use(); }
    const KvMemory& kv() const { return kv_; }
    const Passes& passes() const { return passes_; }
    Passes& passes() { return passes_; }
    uint32_t max_tokens() const { return max_tokens_; } // of a batch

    const ModelRunner* draft() const { return draft_.get(); }
    ModelRunner* draft() { return draft_.get(); } // null: there is none. A sequence has one logit row at most
    const HiddenStates* goes_on_from() const { return hidden_.goes_on_from; } // of a head; else null

    // ---- exchanged between steps, of which none is in flight
    const AttentionInUse& attention() const { return *attention_; }
    AttentionInUse& attention() { return *attention_; } // the draft's too
    ModelSwap& model_swap() { return *model_swap_; }    // not of a draft

    // Of one of several ranks, after a step in which one of them failed: the device connects anew, while theirs do.
    Result<> reconnect();

  private:
    class Builder;
    ModelRunner(std::shared_ptr<OpenDevice>, std::shared_ptr<AttentionInUse>, host::Model, Clock&, const Ranks*);

    std::shared_ptr<OpenDevice> device_;        // with the draft
    std::shared_ptr<AttentionInUse> attention_; // likewise
    Ranks* ranks_ = nullptr;                    // once the device is connected with them
    uint32_t max_tokens_ = 0;
    ModelInUse model_;
    DeviceWeights weights_;
    KvMemory kv_;
    HiddenLinks hidden_;
    Passes passes_;
    std::unique_ptr<ModelSwap> model_swap_;
    std::unique_ptr<ModelRunner> draft_;
};

}  // namespace patchbay::runner
