// What one step did: the raw material of metrics, per-step records and progress bars. Costs O(what was scheduled). What
// happened since the step before counts in it: requests that were aborted, faults of the kv_policy, ends of swaps.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "host/swap_record.hpp"
#include "kv/group_kind.hpp"
#include "runner/call_times.hpp"

namespace patchbay::engine {

enum class Phase { kAdmit, kPlan, kApply, kBuild, kRun, kSample, kCommit, kPublish };
inline constexpr size_t kPhaseCount = 8;
std::string_view name_of(Phase);

// Why a sequence that might have been swapped out is recomputed: no room in host memory; auto: copying would take
// longer; no step has come back yet that says what computing takes.
enum class SwapFallback { kFull, kDearer, kUnmeasured };
inline constexpr size_t kSwapFallbacks = 3;
std::string_view name_of(SwapFallback);

struct ScheduledWork {
    uint32_t scheduled_seqs = 0, scheduled_tokens = 0;   // tokens computed this step
    uint32_t prefill_tokens = 0, decode_tokens = 0;      // of them
    uint32_t sampled_tokens = 0;                         // appended to outputs
    uint32_t admitted = 0, finished = 0, trimmed = 0;    // sequences; trimmed: items cut because blocks ran out
    uint32_t forked = 0;                                 // sequences that share a sibling's prompt
};

struct QueueReport { // after the step
    uint32_t running_requests = 0, waiting_requests = 0;
    uint64_t waiting_tokens = 0;                         // prompt and recomputed tokens that wait
    uint64_t oldest_wait_ns = 0;
};

struct KvReport {
    uint32_t total_pages = 0, used_pages = 0, cached_pages = 0; // after the step; cached: free but reusable
    std::array<uint32_t, kv::kGroupKinds> group_pages{};        // of the used ones, by the kind of their group
    uint64_t token_slots = 0, empty_slots = 0;           // after it, in pages of those who run, shared ones for each
    uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0; // of requests admitted this step
    uint32_t evicted_pages = 0, chosen_evictions = 0;    // of them, pages that a kv_policy chose
    uint32_t copied_pages = 0;                           // that forked sequences wrote to
    std::vector<uint64_t> residencies_ns;                // that pages were held which came back since the step before
    double watermark = 0;                                // share of the blocks kept free when admitting, after the step
};

struct PreemptionReport {
    uint32_t preemptions = 0;
    uint32_t preempted_for_memory = 0;                   // of them, those in steps that lacked pages
    uint64_t preempted_tokens = 0;                       // computed tokens thrown away
    uint32_t swapped_out = 0, swapped_in = 0;            // sequences: of the preempted, of the admitted ones
    uint32_t pages_to_host = 0, pages_to_device = 0;     // copied for them before the step
    std::array<uint32_t, kSwapFallbacks> swap_fallbacks{};
    uint32_t swap_pages = 0, used_swap_pages = 0;        // after the step; all, those that hold KV
    double host_page_ns = 0, token_ns = 0;               // as measured so far: to copy a page, to compute a token
};

struct DraftReport {
    static constexpr size_t kPositions = 16;
    uint32_t verified_sequences = 0;                     // those that had drafts
    uint32_t drafted_tokens = 0, accepted_tokens = 0;
    std::array<uint32_t, kPositions> drafted_at{}, accepted_at{}; // by position; the last one: and after it
    uint32_t branches = 0, dropped_branches = 0;         // paths of drafts but the first: verified, without room
    uint32_t branch_tokens = 0;                          // accepted that the first path did not have
    uint32_t length = 0;                                 // that each sequence was given after this step, at most
    uint32_t passes = 0, pass_tokens = 0;                // of a draft model, prompts included
    uint64_t propose_ns = 0;                             // until they are there: calls, passes, copies of pages
    uint64_t pass_ns = 0;                                // of it, the passes
};

struct GrammarReport {
    uint32_t masks = 0, cut_drafts = 0;                  // rows under a grammar; drafts that theirs does not allow
    uint64_t mask_ns = 0;
    uint64_t compiled = 0, cached = 0, refused = 0;      // for requests since the step before
    uint64_t compile_ns = 0;
};

struct CallReport { // calls of plugins
    uint64_t plan_ns = 0, sample_ns = 0, propose_ns = 0, kv_update_ns = 0, kv_choose_ns = 0; // inside them
    runner::CallTimes forward;                           // inside those of the forward pass
    uint32_t plan_faults = 0, sampler_faults = 0, proposer_faults = 0, kv_policy_faults = 0;
    // Of them, those in which the contract was broken by what came back. In the others the call failed; of samplers: no
    // token could be drawn from the logits, as they say.
    uint32_t plan_breaches = 0, sampler_breaches = 0, proposer_breaches = 0, kv_policy_breaches = 0;
};

struct GraphReport {
    bool replayed = false;
    std::string_view miss = "device";                    // reason, a static string; empty: it was replayed
    uint32_t size = 0, padded_tokens = 0;                // tokens of the graph; of them those of no sequence
    uint64_t capture_ns = 0;                             // for one captured in this step
    uint32_t captured = 0;                               // graphs so far
    uint64_t bytes = 0;                                  // that they take
};

struct StepReport {
    uint64_t step = 0;
    uint64_t start_ns = 0, end_ns = 0;                   // on the engine's clock
    std::array<uint64_t, kPhaseCount> phase_ns{};
    std::string_view sync_reason = "off";                // why the step before was back first; empty: it was in flight
    uint64_t broadcast_bytes = 0, broadcast_ns = 0;      // the step to each of the other ranks
    ScheduledWork work;
    QueueReport queues;
    KvReport kv;
    PreemptionReport preemption;
    DraftReport drafts;
    GrammarReport grammars;
    CallReport calls;
    GraphReport graph;
    std::vector<host::SwapRecord> swaps;                 // that began, ended or were refused in this step or before it
};

}  // namespace patchbay::engine
