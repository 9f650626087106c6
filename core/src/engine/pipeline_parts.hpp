// The parts of a pipeline in groups, each built on those before it. Each part is independent; only this file includes
// all of them.
#pragma once
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "engine/loop/in_flight.hpp"
#include "engine/loop/page_copies.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/loop/step_loop.hpp"
#include "engine/placement/kv_policy_port.hpp"
#include "engine/placement/placement.hpp"
#include "engine/request/intake.hpp"
#include "engine/scheduling/admission.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "engine/scheduling/scheduler_view.hpp"
#include "engine/speculation/draft_records.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "engine/swap/attention_swaps.hpp"
#include "engine/swap/model_swaps.hpp"
#include "engine/swap/swap_ports.hpp"
#include "engine/swap/swaps.hpp"
#include "engine/trace/kv_event_feed.hpp"
#include "engine/trace/step_files.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

struct EngineFacts;

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

struct CommonParts { // what all others are given
    explicit CommonParts(const PipelineInputs&);

    const config::EngineConfig config;
    const config::EngineSettings& settings;
    Clock& clock;
    execution::Executor& executor;
    StepContext context;
    SwapJournal journal;
};

struct CacheParts {
    CacheParts(CommonParts&, std::unique_ptr<kv::KvCache>, host::KvPolicy);

    std::unique_ptr<kv::KvCache> kv;
    KvPolicyPort policy;
};

struct SequenceParts {
    SequenceParts(const PipelineInputs&, CommonParts&, kv::KvCache&);

    Sequences all;
    Aborts aborts;
    Siblings siblings;
    DraftKvTable draft_kv;
    BeamSearches beams;
};

struct SchedulingParts {
    SchedulingParts(CommonParts&, kv::KvCache&, SequenceParts&);

    PressureMonitor pressure;
    PrefixHints hints;
    SchedulerPort scheduler;
    SchedulerView view;
    Admission admission;
};

struct SamplingParts {
    SamplingParts(const PipelineInputs&, CommonParts&);

    TokenRules token_rules;
    StructuredOutput structured_output;
    Constraints constraints;
    PromptLogprobs prompt_logprobs;
    Pooling pooling;
    Surprisals surprisals;
    SampleRowBuilder rows;
    SamplerPort sampler;
};

struct DraftParts {
    DraftParts(const PipelineInputs&, CommonParts&, kv::KvCache&, SequenceParts&);

    DraftRecords records;
    DraftVerification verification;
    Branches branches;
};

struct PlacementParts {
    PlacementParts(const PipelineInputs&, CommonParts&, kv::KvCache&, SequenceParts&, SchedulingParts&,
                   SamplingParts&);

    Preemption preemption;
    Placement placement;
    Recomputation recomputation;
};

struct BatchParts {
    BatchParts(const PipelineInputs&, CommonParts&, kv::KvCache&, SequenceParts&, SamplingParts&, DraftParts&);

    BatchBuilder builder;
    PageCopies copies;
};

struct OutputParts {
    OutputParts(const PipelineInputs&, CommonParts&, kv::KvCache&, SequenceParts&, SchedulingParts&, SamplingParts&,
                DraftParts&, Proposals&);

    InFlightSteps in_flight;
    Outputs outputs;
    Lifecycle lifecycle;
    Commit commit;
};

struct SwapParts {
    SwapParts(const PipelineInputs&, CommonParts&, CacheParts&, SequenceParts&, SchedulingParts&, SamplingParts&,
              PlacementParts&, Proposals&);

    SwapPort& port(SwapSlot);

    SchedulerSwaps scheduler;
    SamplerSwaps sampler;
    ProposerSwaps proposer;
    KvPolicySwaps kv_policy;
    AttentionSwaps attention;
    ModelSwaps model;
    Swaps all;
};

}  // namespace patchbay::engine
