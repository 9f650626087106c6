#include "engine/placement/recomputation.hpp"

#include <vector>

#include "engine/facts.hpp"
#include "engine/placement/preemption.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void Recomputation::recompute_all() {
    const auto running = sequences_.running();
    const std::vector<Sequence*> all(running.begin(), running.end()); // beams leave together
    for (auto s = all.rbegin(); s != all.rend(); ++s) // each goes before all that wait
        if ((*s)->place == Place::kRunning) preemption_.compute_anew(**s);
    for (const auto& [id, s] : sequences_.all()) prompt_logprobs_.start_over(*s);
    hints_.forget_all();
    kv_.prefixes().start_over(facts_.kv_identity());
    std::vector<Sequence*> stale; // the scheduler was shown KV of them, in the cache or in host memory
    for (const pb_sequence& r : sequences_.waiting().records())
        if (r.cached_tokens > 0 || r.flags & PB_SEQ_SWAPPED) stale.push_back(sequences_.find(r.id));
    for (Sequence* s : stale) {
        if (!s->kv.swapped.empty()) kv_.swap().drop(s->kv.swapped);
        hints_.refresh(*s);
    }
}

}  // namespace patchbay::engine
