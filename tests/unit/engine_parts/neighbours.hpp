// What stands around the parts from the queue to the pages: real, small, and over policies and an executor that a test
// plays. A test makes the part that it is about over those that come before it.
#pragma once
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "config/engine_config.hpp"
#include "engine/groups/siblings.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/placement/preemption.hpp"
#include "engine/output/pooling.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/sampling/token_rules.hpp"
#include "engine/scheduling/admission.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "engine/scheduling/scheduler_port.hpp"
#include "engine/speculation/branches.hpp"
#include "engine/speculation/draft_records.hpp"
#include "engine/swap/swap_journal.hpp"
#include "kv/kv_cache.hpp"
#include "unit/engine_parts/fake_policies.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing {

struct World { // of a test: what is configured
    uint32_t blocks = 16;
    kv::PrefixCaching caching = kv::PrefixCaching::kOff;
    std::vector<kv::GroupSpec> groups = {kv::GroupSpec{}};
    uint32_t slots = 0; // in host memory
    bool has_draft_model = false;
    std::shared_ptr<const text::Tokenizer> tokenizer = {}; // null: ids only
    config::EngineSettings settings{.max_num_batched_tokens = 64, .max_num_seqs = 8, .block_size = 4};
};

// Sequences, their pages, and the way into the queue.
struct QueueNeighbours {
    static constexpr uint32_t kVocab = 10'000, kMaxModelLen = 1000;

    explicit QueueNeighbours(World = {});
    ~QueueNeighbours();

    // One that waits as the last.
    Sequence& wait(std::unique_ptr<Sequence>);
    Sequence& wait(uint32_t prompt_tokens, SamplingParams = {});
    // One that runs, with so many of its tokens computed, and pages for them.
    Sequence& run(uint32_t prompt_tokens, uint32_t computed, SamplingParams = {});
    // Outputs of one prompt, of which the first one waits and holds the others.
    std::vector<Sequence*> add_siblings(uint32_t count, uint32_t prompt_tokens);
    std::vector<RequestId> waiting() const;
    StepReport& report() { return context.report; }

    RequestId next_id = 1;
    config::EngineSettings settings;
    VirtualClock clock;
    StepContext context;
    std::vector<host::Identity> plugins;
    SwapJournal journal{context, plugins};
    std::vector<TokenId> eos = {2};
    std::shared_ptr<const text::Tokenizer> tokenizer;
    FakeExecutor executor;

    kv::KvCache kv;
    Sequences sequences;
    Siblings siblings{kv};
    DraftKvTable draft_kv;
    BeamSearches beams{{eos, kVocab, settings, tokenizer.get()}, sequences, kv, draft_kv, context};
    PrefixHints hints{sequences, kv, siblings, beams};
    SchedulerPort scheduler{settings, sequences, clock, context, journal};
    FakeScheduler& policy = install<FakeScheduler>(scheduler.slot(), kFakeScheduler);
    Admission admission{sequences, hints, scheduler, context, settings.max_waiting};
};

// What makes rows of them, and branches of their drafts.
struct RowNeighbours : QueueNeighbours {
    explicit RowNeighbours(World = {});
    ~RowNeighbours();

    // One that runs, whose prompt is computed, with an output token and drafts that are not; and pages for all.
    Sequence& decode(uint32_t prompt_tokens, std::vector<TokenId> drafted = {}, SamplingParams = {});
    // Its newest token and its drafts, as a step computes them.
    static Placed all_of(Sequence& s) { return {&s, s.drafts + 1, s.confirmed(), s.drafts + 1}; }

    runner::BatchForm form{.block_size = settings.block_size, .token_groups = 1, .state_groups = 0};
    TokenRules token_rules{nullptr, eos, kVocab};
    Constraints constraints{{&token_rules}};
    Surprisals surprisals;
    SampleRowBuilder rows{token_rules, surprisals};
    PromptLogprobs prompt_logprobs{settings, kVocab};
    Pooling pooling;
    DraftRecords drafts;
    Branches branches{settings, kv, drafts, draft_kv, context};
};

}  // namespace patchbay::engine::testing
