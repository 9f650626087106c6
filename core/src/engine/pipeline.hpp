// All parts of one engine, in the order in which each is built on those before it. Each is alone in its own room; this
// is the only place that knows them all.
#pragma once
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "engine/loop/kv_event_feed.hpp"
#include "engine/loop/step_loop.hpp"
#include "engine/placement/kv_policy_port.hpp"
#include "engine/request/intake.hpp"
#include "engine/swap/attention_swaps.hpp"
#include "engine/swap/model_swaps.hpp"
#include "engine/swap/swap_ports.hpp"
#include "engine/swap/swaps.hpp"
#include "engine/trace/step_trace.hpp"

namespace patchbay::engine {

struct PipelineInputs { // what is loaded, and outlives the pipeline
    const config::EngineConfig& config; // of which a copy stays
    Clock& clock;
    EngineFacts& facts;
    execution::Executor& executor;
    const runner::BatchForm& batch_form;
    std::shared_ptr<const text::Tokenizer> tokenizer; // null: ids only
    const std::vector<TokenId>& eos;
    DraftModel* draft_model; // that the proposer drafts with; null: there is none
    std::string_view sync_reason;
};

struct Pipeline {
    // `proposer`: empty: there are no drafts. `kv_policy`: empty: the cache evicts what is unused the longest.
    Pipeline(const PipelineInputs&, std::unique_ptr<kv::KvCache>, host::Proposer proposer,
             host::KvPolicy kv_policy = {});
    ~Pipeline();

    SwapPort& port(SwapSlot);
    const SwapPort& port(SwapSlot slot) const { return const_cast<Pipeline&>(*this).port(slot); }

    const config::EngineConfig config;
    const config::EngineSettings& settings;
    const config::SpeculationSettings& speculation;
    const config::SwapSettings& swap_settings;
    execution::Executor& executor;
    StepContext context;
    SwapJournal journal;
    std::unique_ptr<kv::KvCache> kv;
    KvPolicyPort kv_policy;

    Sequences sequences;
    Aborts aborts;
    Siblings siblings;
    DraftKvTable draft_kv;
    BeamSearches beams;

    PressureMonitor pressure;
    PrefixHints hints;
    SchedulerPort scheduler;
    SchedulerView view;
    Admission admission;

    TokenRules token_rules;
    StructuredOutput structured_output;
    Constraints constraints;
    PromptLogprobs prompt_logprobs;
    Pooling pooling;
    Surprisals surprisals;
    SampleRowBuilder rows;
    SamplerPort sampler;

    DraftRecords drafts;
    DraftVerification verification;
    Branches branches;
    Preemption preemption;
    Placement placement;
    Recomputation recomputation;
    BatchBuilder batches;
    PageCopies copies;
    Proposals proposals;
    InFlightSteps in_flight;
    Outputs outputs;
    Lifecycle lifecycle;
    Commit commit;
    SchedulerSwaps scheduler_swaps;
    SamplerSwaps sampler_swaps;
    ProposerSwaps proposer_swaps;
    KvPolicySwaps kv_policy_swaps;
    AttentionSwaps attention_swaps;
    ModelSwaps model_swaps;
    Swaps swaps;
    StepSummary summary;
    Passes passes;
    Intake intake;
    StepLoop loop;
    KvEventFeed kv_events;
    std::unique_ptr<StepTrace> trace; // null: none is written
};

}  // namespace patchbay::engine
