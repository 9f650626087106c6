// All groups of parts of one engine, in the order in which each is built on those before it.
#pragma once
#include <memory>

#include "engine/loop/step_summary.hpp"
#include "engine/pipeline_parts.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

struct Pipeline {
    // `proposer`: empty: there are no drafts. `kv_policy`: empty: the cache evicts what is unused the longest.
    Pipeline(const PipelineInputs&, std::unique_ptr<kv::KvCache>, host::Proposer proposer,
             host::KvPolicy kv_policy = {});
    ~Pipeline();

    SwapPort& port(SwapSlot slot) { return swaps.port(slot); }

    CommonParts common;
    CacheParts cache;
    SequenceParts sequences;
    SchedulingParts scheduling;
    SamplingParts sampling;
    DraftParts drafts;
    PlacementParts placement;
    BatchParts batches;
    Proposals proposals;
    OutputParts output;
    SwapParts swaps;
    StepSummary summary;
    Passes passes;
    Intake intake;
    StepLoop loop;
    KvEventFeed kv_events;
    StepFiles files;
};

}  // namespace patchbay::engine
