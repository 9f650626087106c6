// Another model in place of the one that a ModelRunner computes with: its layers keep the same KV, so that sequences go
// on. Its weights are loaded beside those in use.
#pragma once
#include <memory>

#include "base/result.hpp"
#include "runner/device_weights.hpp"
#include "runner/kv_memory.hpp"
#include "runner/model_in_use.hpp"

namespace patchbay::runner {

class PassGraphs;

class ModelSwap {
  public:
    struct Parts { // which outlive it
        const OpenDevice& device;
        ModelInUse& model; // has read its configuration
        DeviceWeights& weights;
        const KvMemory& kv;
        PassGraphs& graphs;
    };
    // drafts_with_head: which was trained for the model in use.
    ModelSwap(const Parts& parts, const ConfigReader& reader, bool drafts_with_head)
        : p_(parts), reader_(reader), first_(parts.model.facts()), drafts_with_head_(drafts_with_head) {}

    std::unique_ptr<host::Component> give() { return p_.model.give(); } // to outlive its last pass
    // Whether its layers keep the same KV, and its vocabulary is the same. [any thread] kUnsupported: neither.
    Result<pb_model_facts> read_like(const host::Component& model, const weights::FlatConfig&) const;
    // Has the model read its configuration and loads its weights beside those in use: on any thread, beside steps, but
    // for what is given to `run`.
    Result<std::unique_ptr<LoadedWeights>> load_beside(const host::Component& model, const weights::FlatConfig&,
                                                       const weights::WeightSource&, const weights::WeightForm&,
                                                       const BetweenSteps& run) const;
    // Between steps, of which none is in flight. The weights are then those that were in use.
    void use(const host::Component&, LoadedWeights&);
    void release(LoadedWeights& weights) const { p_.weights.release(weights); }

  private:
    Result<> check_like(const host::Component& model, const pb_model_facts&) const; // the one in use
    Result<> check_layer(uint32_t layer, const pb_kv_spec&) const;

    const Parts p_;
    const ConfigReader reader_;
    const pb_model_facts first_; // of the first model: what others have to be like
    const bool drafts_with_head_;
};

}  // namespace patchbay::runner
