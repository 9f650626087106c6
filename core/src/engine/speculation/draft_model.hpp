// The model that a proposer drafts with: patchbay.runner/1 of one engine. Opens it while the proposer is made, goes on
// with it for the sequences of a propose(), and keeps what it has computed of them in step with the target.
// Engine-internal.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.hpp"
#include "config/engine_config.hpp"
#include "engine/sampling/sample_rows.hpp"
#include "engine/speculation/draft_kv.hpp"
#include "execution/executor.hpp"
#include "host/registry.hpp"
#include "host/slot.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::engine {

std::map<std::string, std::string> settings_of(const pb_runner_load&); // of the model that it names

class DraftModel {
  public:
    struct Context { // of the engine, which outlives it
        const config::EngineConfig& config;  // during create() only
        const host::Registry& registry;      // likewise
        host::Services services;             // for its model component
        ThreadPool& pool;
        bool computes;                       // the device
        const weights::FlatConfig& target;   // likewise
    };
    explicit DraftModel(const Context&);
    DraftModel(const DraftModel&) = delete;
    DraftModel& operator=(const DraftModel&) = delete;

    // ---- while the engine is made [control]
    const pb_runner& service() const { return service_; }
    void end_create() { context_.reset(); }  // of the proposer: nothing is loaded from here on
    runner::DraftModel* draft() { return draft_ ? &*draft_ : nullptr; } // for the runner; null: none was loaded
    const std::string& identity() const { return identity_; }           // as weights::model_identity(); "dummy"
    const std::map<std::string, std::string>& loaded_with() const { return loaded_with_; } // settings
    const pb_runner_facts& loaded_facts() const { return loaded_facts_; }

    struct Parts {
        execution::DraftPasses& passes;   // its own
        kv::KvCache& kv;
        const host::Slot& sampler;        // the engine's
        std::span<const TokenId> eos;     // for made-up tokens
        Clock& clock;
        const SampleRowBuilder& rows;
        DraftKvTable& draft_kv;
    };
    void start(const Parts& parts) { // the runner is made
        parts_.emplace(parts);
        draft_.reset();
    }

    // ---- steps [step]
    // Of `count` drafts as many as it reaches and as there are pages for, which are taken. `running`: sequences, each
    // of which is left a block.
    uint32_t make_room(Sequence&, uint32_t count, size_t running);
    // Around a propose(): the sequences that are drafted for, and all that the target has computed, in their order.
    struct Row {
        Sequence* sequence;
        uint32_t max_drafts;
    };
    void begin(std::span<const Row>, std::vector<Sequence*> all);
    // What the target has computed and it has not yet, it computes now, unless a pass did already.
    Result<> end();
    // Of the sequence's tokens those that neither model has to compute any more.
    uint32_t computed_by_both(const Sequence&) const;
    bool keeps_kv() const { return facts_.layer_count > 0; } // else it need not follow the target

    struct Work { // since begin()
        uint32_t passes = 0, tokens = 0;
        uint64_t ns = 0;
    };
    const Work& work() const { return work_; }

  private:
    struct Turn { // of a sequence in a propose()
        Sequence* sequence;
        uint32_t max_drafts;
        uint32_t asked; // row of the batch under way, else kNone
    };
    struct Span { // of a sequence's tokens that a pass computes
        Sequence* sequence;
        uint32_t begin, end;
        uint32_t asked;
        size_t features = 0; // of a head: where its own begin in features_
    };
    static constexpr uint32_t kNone = UINT32_MAX;

    Result<> load(const pb_runner_load&, pb_runner_facts&);
    Result<> forward(pb_runner_batch&);
    void append_drafts(pb_runner_batch&);
    bool is_head() const { return head_depth_.has_value(); }
    void plan_pass();
    void plan_layerless_pass();
    bool find_features(const Sequence&, uint32_t begin, uint32_t end); // appends to features_
    Result<> check_head_pass(const pb_runner_batch&) const;
    pb_sample_batch sample_batch(const pb_runner_batch&); // over the rows that are asked for
    Result<runner::SampledRows> run_pass(const pb_sample_batch&);
    Result<runner::SampledRows> sample(const host::Component&, pb_sample_batch, std::span<float> logits);
    Result<> draw_rows(const host::Component&, pb_sample_batch, std::span<float> logits);
    void hand_out(const runner::SampledRows&, pb_runner_batch&) const;
    void make_up(pb_runner_batch&) const;
    DraftKv& kv_of(const Sequence& s) const { return parts_->draft_kv.of(s); }
    static pb_status answer(DraftModel&, const Result<>&, pb_str* why);

    std::optional<Context> context_;
    std::optional<runner::DraftModel> draft_;
    std::optional<Parts> parts_;
    std::optional<uint32_t> head_depth_; // of a head: what max_draft_depth() gave; none: it is a model of its own
    pb_model_facts facts_ = sized<pb_model_facts>();
    std::string identity_;
    std::map<std::string, std::string> loaded_with_;
    pb_runner_facts loaded_facts_ = sized<pb_runner_facts>();
    bool computes_;
    double acceptance_ = -1; // of made-up tokens
    uint64_t noise_ = 0;     // in seeds: by rejection drafts must not follow from the noise of the target's tokens
    pb_runner service_{};
    std::string why_;

    // ---- the propose() under way
    bool in_propose_ = false, followed_ = false;
    std::vector<Sequence*> all_;
    std::unordered_map<RequestId, Turn> turns_;
    Work work_;
    // ---- the pass under way
    std::vector<Span> spans_;
    std::vector<int32_t> features_; // of a head: by token, the row of a hidden state
    uint32_t ahead_ = 0;            // of a head without layers
    runner::Batch batch_;
    std::vector<pb_sample_row> rows_;
    std::vector<pb_sampling_params> params_;
    std::vector<uint32_t> asked_;      // by row: of the proposer's batch
    std::vector<TokenId> tokens_, top_tokens_;
    std::vector<float> logprobs_, top_logprobs_;
    std::vector<int32_t> faults_; // by row: 1 where there was nothing to choose from
    bool draws_ = false;               // the batch wants what its tokens are drawn from
    std::vector<float> drawn_from_;    // by row: that
};

}  // namespace patchbay::engine
