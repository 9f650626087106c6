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
    config::EngineSettings settings{.max_num_batched_tokens = 64, .max_num_seqs = 8, .block_size = 4};
};

// Sequences, their pages, and the way into the queue.
struct QueueNeighbours {
    static constexpr uint32_t kVocab = 10'000, kMaxModelLen = 1000;

    explicit QueueNeighbours(World w = {})
        : settings(std::move(w.settings)),
          kv(w.blocks, settings.block_size, w.caching, "model", std::move(w.groups), w.slots),
          draft_kv(w.has_draft_model) {
        context.step = 1;
    }

    // One that waits as the last.
    Sequence& wait(std::unique_ptr<Sequence> made) {
        Sequence& s = sequences.add(std::move(made));
        s.kv.salt = {};
        admission.leave(s);
        admission.put_last(s);
        return s;
    }
    Sequence& wait(uint32_t prompt_tokens, SamplingParams sampling = {}) {
        return wait(sequence(next_id++, prompt_tokens, std::move(sampling)));
    }
    // One that runs, with so many of its tokens computed, and pages for them.
    Sequence& run(uint32_t prompt_tokens, uint32_t computed, SamplingParams sampling = {}) {
        Sequence& s = wait(prompt_tokens, std::move(sampling));
        admission.leave(s);
        sequences.run(s);
        if (!kv.tables().grow(s.kv.table, computed)) throw std::runtime_error("there are not enough pages");
        s.computed = computed;
        return s;
    }
    // Outputs of one prompt, of which the first one waits and holds the others.
    std::vector<Sequence*> add_siblings(uint32_t count, uint32_t prompt_tokens) {
        SamplingParams p;
        p.n = count;
        Sequence& first = wait(prompt_tokens, p);
        std::vector<Sequence*> all = {&first};
        for (uint32_t i = 1; i < count; ++i) {
            auto made = sequence(next_id++, prompt_tokens, p);
            made->tokens = first.tokens;
            made->group = first.id;
            made->index = i;
            made->place = Place::kHeld;
            all.push_back(&sequences.add(std::move(made)));
        }
        siblings.add(all);
        siblings.hold(first);
        return all;
    }
    std::vector<RequestId> waiting() const {
        std::vector<RequestId> out;
        for (const pb_sequence& r : sequences.waiting().records()) out.push_back(r.id);
        return out;
    }
    StepReport& report() { return context.report; }

    RequestId next_id = 1;
    config::EngineSettings settings;
    VirtualClock clock;
    StepContext context;
    std::vector<host::Identity> plugins;
    SwapJournal journal{context, plugins};
    std::vector<TokenId> eos = {2};
    FakeExecutor executor;

    kv::KvCache kv;
    Sequences sequences;
    Siblings siblings{kv};
    DraftKvTable draft_kv;
    BeamSearches beams{{eos, kVocab, settings}, sequences, kv, draft_kv, context};
    PrefixHints hints{sequences, kv, siblings, beams};
    SchedulerPort scheduler{settings, sequences, clock, context, journal};
    FakeScheduler& policy = install<FakeScheduler>(scheduler.slot(), kFakeScheduler);
    Admission admission{sequences, hints, scheduler, context, settings.max_waiting};
};

// What makes rows of them, and branches of their drafts.
struct RowNeighbours : QueueNeighbours {
    explicit RowNeighbours(World w = {}) : QueueNeighbours(std::move(w)) {}

    // One that runs, whose prompt is computed, with an output token and drafts that are not; and pages for all.
    Sequence& decode(uint32_t prompt_tokens, std::vector<TokenId> drafted = {}, SamplingParams sampling = {}) {
        Sequence& s = run(prompt_tokens, prompt_tokens, std::move(sampling));
        s.tokens.push_back(7);
        s.tokens.insert(s.tokens.end(), drafted.begin(), drafted.end());
        s.drafts = static_cast<uint32_t>(drafted.size());
        const auto size = static_cast<uint32_t>(s.tokens.size());
        if (!kv.tables().grow(s.kv.table, size)) throw std::runtime_error("too few pages");
        return s;
    }
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
