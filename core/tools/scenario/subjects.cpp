// What `expect` can name.
#include <algorithm>

#include "scenario/load.hpp"

namespace patchbay::scenario {

const std::vector<SubjectInfo>& subjects() {
    using S = Subject;
    static const std::vector<SubjectInfo> all = {
        {S::kScheduled, "scheduled", Counts{}, "tokens that the step computes, of all that it has; {}: none"},
        {S::kPreempted, "preempted", Names{}, "who was preempted for the step, in the order of the plan"},
        {S::kWaiting, "waiting", Names{}, "who waits, the first in the queue first"},
        {S::kRunning, "running", Names{}, "who runs, in order of admission"},
        {S::kFinished, "finished", Endings{}, "who has ended since this was last asked, and why"},
        {S::kInFlight, "in_flight", Counts{}, "tokens of steps that are not back, of these"},
        {S::kComputed, "computed", Counts{}, "tokens whose KV is there, of these"},
        {S::kCachedTokens, "cached_tokens", Counts{}, "prompt tokens that came from the prefix cache, of these"},
        {S::kDrafts, "drafts", Counts{}, "drafts that wait to be verified, of these"},
        {S::kPreemptions, "preemptions", Counts{}, "how often these were preempted"},
        {S::kStopReason, "stop_reason", Words{},
         "the stop token or string that ended these; of those that failed, a part of the error's text; else empty"},
        {S::kText, "text", Texts{}, "the output so far, of these"},
        {S::kDecoded, "decoded", Words{}, "the text of the output so far, of these"},
        {S::kSum, "sum",
         Totals{{S::kScheduled, {}}, {S::kInFlight, {}}, {S::kComputed, {}}, {S::kCachedTokens, {}}, {S::kDrafts, {}},
                {S::kPreemptions, {}}},
         "of these, the sum over all requests"},
        {S::kCount, "count",
         Totals{{S::kScheduled, {}}, {S::kPreempted, {}}, {S::kWaiting, {}}, {S::kRunning, {}}, {S::kFinished, {}},
                {S::kSwapped, {}}},
         "how many requests these name"},
        {S::kFreeBlocks, "free_pages", Number{}, "KV pages that no request holds, cached ones too"},
        {S::kCachedBlocks, "cached_pages", Number{}, "of these, the ones that can be found again"},
        {S::kReferences, "references", BlockCounts{},
         "how many requests hold these blocks; 0: cached, and held by none"},
        {S::kEvictedNext, "evicted_next", BlockList{},
         "the cached blocks that are evicted next, the first one first; as many as are named"},
        {S::kKvEvents, "kv_events", KvEvents{},
         "blocks that entered and left the prefix cache since this was last asked, as the engine publishes them"},
        {S::kHitTokens, "hit_tokens", Number{}, "tokens that were found cached, counted once a request"},
        {S::kQueryTokens, "query_tokens", Number{}, "tokens that were looked for, counted once a request"},
        {S::kDraftedTokens, "drafted_tokens", Number{}, "drafts that were verified so far"},
        {S::kAcceptedTokens, "accepted_tokens", Number{}, "of these, the ones that were accepted"},
        {S::kSteps, "steps", Number{}, "steps of the engine so far that computed something"},
        {S::kKvPolicyFaults, "kv_policy_faults", Number{}, "wrong or missing choices of the kv_policy so far"},
        {S::kPlanFaults, "plan_faults", Number{}, "plans that were refused so far"},
        {S::kSwapped, "swapped", Names{}, "who waits with KV in host memory, the first in the queue first"},
        {S::kFreeSwapBlocks, "free_swap_pages", Number{}, "KV pages in host memory that no request holds"},
        {S::kPolicy, "policy", std::string{}, "the scheduler that has the slot"},
    };
    return all;
}

const SubjectInfo& subject_info(Subject subject) {
    return *std::ranges::find(subjects(), subject, &SubjectInfo::subject);
}

bool asks_for(const Expectation& e, Subject subject) {
    const auto* totals = std::get_if<Totals>(&e.value);
    return e.subject == subject || (totals && totals->contains(subject));
}

bool is_of_blocks(const Expectation& e) {
    return e.subject == Subject::kReferences || e.subject == Subject::kEvictedNext || e.subject == Subject::kKvEvents;
}

bool is_of_plan(const Expectation& e) { return asks_for(e, Subject::kScheduled) || asks_for(e, Subject::kPreempted); }

}  // namespace patchbay::scenario
