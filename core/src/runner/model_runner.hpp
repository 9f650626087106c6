// A model on a device: weights prepared, KV memory allocated, one forward pass at a time. The engine's only way to
// logits; owns the device, model and attention components.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "runner/batch.hpp"
#include "runner/call_times.hpp"
#include "runner/device_sampling.hpp"
#include "runner/device_steps.hpp"
#include "runner/device_weights.hpp"
#include "runner/graph_cache.hpp"
#include "runner/hidden_output.hpp"
#include "runner/hidden_states.hpp"
#include "runner/kv_memory.hpp"
#include "runner/model_facts.hpp"
#include "runner/open_device.hpp"
#include "runner/runner_settings.hpp"
#include "runner/step_inputs.hpp"
#include "runner/workspace.hpp"

namespace patchbay::runner {

class ModelRunner {
  public:
    static Result<std::unique_ptr<ModelRunner>> create(host::Device, host::Model, host::Attention,
                                                       const weights::WeightSource&, const RunnerSettings&,
                                                       Clock&, DraftModel* draft = nullptr);
    ~ModelRunner();

    const pb_model_facts& facts() const { return facts_; }
    const pb_device_info& device_info() const { return its_.info; }
    const KvMemory& kv() const { return kv_; }
    const LoadedWeights& weights() const { return weights_.in_use(); }

    // One forward pass. Logits of the batch's logit rows, (rows, vocab) f32 in host memory, valid until the next call.
    // On a device that computes nothing there are none, and the time that the device charges passes on the clock.
    // A batch without tokens is its copies alone.
    Result<std::span<float>> forward(const Batch&);
    Result<> check_sampler(const host::Component& sampler) const { // that it can sample here
        return runner::check_sampler(sampler, its_.name, its_.info);
    }
    // The same, and its rows sampled in the same step; logits stay where they are. Valid until the next call but one.
    Result<SampledRows> forward(const Batch&, const SampleCall&);
    // Samples from logits that forward() gave for its latest batch, again if need be.
    Result<SampledRows> sample(std::span<const float> logits, const SampleCall&);
    // The halves of forward() where steps can be in flight, at most two: wait() ends what submit() began, the oldest
    // first. Ids below 0 of a batch are tokens that the step in flight samples: −1 of its row 0, −2 of its row 1.
    bool can_submit() const { return steps_.can_submit(); }
    Result<> submit(const Batch&, const SampleCall*); // null: nothing is sampled
    Result<SampledRows> wait();
    void abandon(); // waits for what is in flight; its results are lost
    // What the latest batch wanted of them, one range after the other: (tokens, hidden_size) f32 in host memory, valid
    // until the next call. Of steps that are not in flight.
    std::span<const float> hidden_states() const { return hidden_out_.states(); }
    uint32_t hidden_size() const { return hidden_out_.width(facts_); } // 0: the model does not give them
    const CallTimes& call_times() const { return times_; } // of the latest pass
    const GraphUse& graph_use() const { return graph_use_; } // likewise

    const ModelRunner* draft() const { return draft_.get(); }
    ModelRunner* draft() { return draft_.get(); } // null: there is none. A sequence has one logit row at most
    uint32_t max_tokens() const { return max_tokens_; } // of a batch
    const HiddenStates* goes_on_from() const { return goes_on_from_; } // of a head; else null

    const GraphCache& graphs() const { return *graphs_; }
    uint64_t load_capture_ns() const { return load_capture_ns_; } // for the graphs that were captured at load

    const host::Component& device() const { return *device_.component; }
    const host::Component& model() const { return *model_; }
    const host::Component& attention() const { return *attention_; }

    // ---- another model whose layers keep the same KV, between steps, of which none is in flight ----
    std::unique_ptr<host::Component> give_model() { return std::move(own_model_); } // to outlive its last pass
    // Whether its layers keep the same KV, and its vocabulary is the same. [any thread] kUnsupported: neither.
    Result<pb_model_facts> read_like(const host::Component& model, const weights::FlatConfig&) const;
    // Has the model read its configuration and loads its weights beside those in use: on any thread, beside steps, but
    // for what is given to `run`.
    Result<std::unique_ptr<LoadedWeights>> load_beside(const host::Component& model, const weights::FlatConfig&,
                                                       const weights::WeightSource&, const weights::WeightForm&,
                                                       const BetweenSteps& run);
    void use_model(const host::Component&, LoadedWeights&); // which are then those that were in use
    void release(LoadedWeights& weights) const { weights_.release(weights); }

    // ---- another attention, between steps, of which none is in flight ----
    std::unique_ptr<host::Component> give_attention() { return std::move(own_attention_); } // to outlive its last pass
    Result<> check_attention(const host::Component&) const; // that it can serve here. [any thread]
    // The one before it stays bound until forget_attention(), so that a failure changes nothing and it can come back.
    // Graphs are captured again. True: it can read the pages that the one before it has written.
    Result<bool> use_attention(const host::Component&);
    void forget_attention(); // the one before the current one
    void end_attention();    // no pass comes any more

  private:
    ModelRunner(std::shared_ptr<OpenDevice>, host::Model, const host::Component& attention, Clock&,
                const Ranks*);
    Result<> open(const RunnerSettings&);
    Result<> check_simulation() const;
    Result<> connect(Ranks&);
    Result<> check_model() const;
    Result<> open_draft(DraftModel&, const RunnerSettings&);
    Result<> check_head(const DraftModel&) const;
    Result<> share_target_weights(const RunnerSettings&); // weights, and memory for hidden states
    Result<> check_like(const host::Component& model, const pb_model_facts&) const; // the one in use
    Result<> load_weights(const weights::WeightSource&, const weights::WeightForm&);
    Result<LayersKv> describe_kv(const RunnerSettings&);
    Result<> bind_kv(const RunnerSettings&, const RunnerSettings& draft);
    Result<> allocate_kv(const RunnerSettings&, const RunnerSettings& draft);
    Result<uint64_t> room_for_kv(const RunnerSettings&, const RunnerSettings& draft); // bytes
    Result<> run_largest(const RunnerSettings&);
    Result<> make_graphs(const RunnerSettings&);
    void make_graph_cache();

    // ---- one pass (forward_pass.cpp) ----
    struct Inputs { // tensors of a pass that no op made
        pb_tensor ids, positions, logit_rows;
        pb_tensor features; // of a head: rows of what it goes on from
        uint32_t draft_step;
    };
    struct InputSizes {
        uint64_t tokens, sequences, logit_rows, blocks;
    };
    uint64_t input_bytes(const InputSizes&) const;
    Result<Inputs> place_inputs(const Batch&, const std::optional<GraphBucket>&);
    pb_tensor place(std::span<const int32_t>); // (n) i32 where the device reads it, once the inputs are sent
    void place_states(const Batch&, const pb_tensor& query_starts);
    Result<> plan_attention();
    enum class Hidden { kUnwanted, kWanted };
    pb_forward forward_of(const Inputs&, Hidden);
    void keep_hidden(const pb_forward&, const Batch&, size_t rows); // of a head, after its pass
    GraphChoice choose(const Batch&);
    void pad(const Batch&, const GraphBucket&); // into padded_
    Result<> check_pass(const Result<>& done, const Result<>& ended, uint32_t tokens) const;
    enum class End { kWait, kSubmit };
    // What run() leaves: logits where forward() leaves them, unless they were sampled from.
    Result<std::span<float>> pass(const Batch&, const SampleCall*, End);
    Result<std::span<float>> run(const Batch&, size_t rows, const GraphChoice&, const SampleCall*, End);
    void fill_placeholders(const Batch&, const Inputs&); // those that are not known here
    Result<> enqueue_sampling(const SampleCall&);
    Result<std::span<float>> copied_logits(size_t rows);
    Result<std::span<float>> copy_only(const Batch&);
    Result<> compute(const pb_forward&);
    Result<> replay(const CapturedGraph&);
    void capture(const Inputs&, const GraphBucket&);
    Result<> capture_graphs(); // all that are missing
    bool keeps(uint32_t layer, kv::GroupKind); // else notes the fault
    static pb_tensor temp(void* self, pb_dtype, int32_t rank, const int64_t* shape);
    static void attend(void* self, uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                       const pb_tensor* v);
    static void state(void* self, uint32_t layer, pb_state* out);
    void charge_attention(uint32_t layer);

    std::shared_ptr<OpenDevice> shared_device_; // with the draft
    OpenDevice& its_;
    std::unique_ptr<host::Component> own_attention_; // null: it is the target's, or was given away
    const host::Device& device_;
    std::unique_ptr<host::Component> own_model_; // null: it was given away
    const host::Component* model_;
    const host::Component* attention_;
    Clock& clock_;
    Ranks* ranks_ = nullptr;
    CallTimes times_;
    pb_model_facts facts_ = sized<pb_model_facts>();
    ConfigReader reader_;
    pb_model_facts signature_ = sized<pb_model_facts>(); // of the first model: what others have to be like
    DeviceWeights weights_;
    KvMemory kv_;
    std::unique_ptr<Workspace> workspace_;
    std::unique_ptr<StepInputs> inputs_;
    DeviceSteps steps_{its_, clock_};
    DeviceSampling sampling_{device_};
    std::unique_ptr<GraphCache> graphs_;
    GraphSettings graph_settings_;
    GraphScope graph_scope_;           // of the plugins that are bound
    uint64_t load_capture_ns_ = 0;
    uint32_t max_tokens_ = 0;
    std::unique_ptr<HiddenStates> hidden_; // for the draft; null: it is no head
    const HiddenStates* goes_on_from_ = nullptr; // of a head: its target's
    std::unique_ptr<ModelRunner> draft_;
    Batch padded_;
    std::vector<float> logits_;        // host copy
    HiddenOutput hidden_out_{its_};
    // ---- of the pass under way ----
    GraphUse graph_use_;
    pb_tensor device_logits_{};        // of the latest pass
    bool capturing_ = false, replaying_ = false;
    std::vector<uint32_t> attended_;   // layers, in order, while capturing
    std::vector<pb_attention_batch> batches_; // by group of tokens
    std::vector<int64_t> no_slots_;           // of a layer that appends nothing, where it is only charged for
    std::vector<pb_state> states_;            // by group of states, for a layer at offset 0
    bool out_of_memory_ = false;       // sticky
    std::string layer_fault_;          // likewise: what the model asked of a layer
    std::string cost_fault_;           // likewise
};

}  // namespace patchbay::runner
