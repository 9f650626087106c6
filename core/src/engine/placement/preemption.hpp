// Sequences that lose their pages to others: their KV is thrown away and computed anew, or lies in host memory until
// they go on. The policy says which sequence, and may say how; which of the two it is, is decided here.
#pragma once
#include "engine/groups/beams.hpp"
#include "engine/placement/token_cost.hpp"
#include "execution/executor.hpp"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class Admission;
class PrefixHints;
struct StepContext;

class Preemption {
  public:
    struct Parts {
        const config::EngineSettings& settings;
        Sequences& sequences;
        kv::KvCache& kv;
        Admission& admission;
        PrefixHints& hints;
        BeamSearches& beams;
        DraftKvTable& draft_kv;
        const execution::Executor& executor;
        StepContext& context;
    };
    explicit Preemption(const Parts& parts) : p_(parts) {}

    void preempt(Sequence&, pb_preemption how); // one that runs: it waits, before all others
    void forget_writes(Sequence&); // by steps in flight, which are of no use: its blocks lose their names
    void compute_anew(Sequence&);  // likewise, and it is preempted
    bool swap_in(Sequence&);                    // with room for a token more. False: there are not enough pages
    // Pages for all tokens of those that run. If they are there, a preemption has another reason: a seat, or a token
    // that was none.
    bool lacks_pages() const;
    // Of a step that came back: its time on the device, with copies of so many pages.
    void note_step(uint32_t tokens, uint32_t host_pages, uint64_t ns);
    double token_ns() const { return token_cost_.ns_a_token(); }

  private:
    bool swap_out(Sequence&, pb_preemption how); // false: its KV is to be computed anew

    const Parts p_;
    TokenCost token_cost_;
};

}  // namespace patchbay::engine
