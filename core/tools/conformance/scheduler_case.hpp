// What a scheduler is shown and what it answers, in the checks: views, and buffers with guards around them.
#pragma once
#include <vector>

#include "conformance/check.hpp"
#include "conformance/noise.hpp"
#include "patchbay/sdk/scheduler.hpp"

namespace patchbay::conformance {

struct View {
    std::vector<pb_sequence> running, waiting;
    pb_scheduler_in in{}; // its pointers are set when it is shown

    const pb_sequence* find(uint64_t id) const;
    bool runs(uint64_t id) const;
};

// Of every shape that a policy meets: empty, decodes only, mixed, budgets of one token, no free page, chunking on and
// off, a step in flight.
std::vector<View> views(); // random ones, and tight ones

struct Planned {
    std::vector<pb_plan_item> items;
    std::vector<pb_preempt_item> preempts;
    bool within_bounds = true; // of its buffers and their counts
};

// extra: bytes by which the host's records are larger than the plugin's.
Result<Planned> show(const host::Component&, LentMemory&, const View&, uint32_t extra = 0);
// A fresh object that is given the view as after a swap, and plans it.
Result<Planned> plan_fresh(Subject&, const View&, uint32_t extra = 0);
bool same(const Planned&, const Planned&);

// A small engine with forgiving rules: what a plan may not do is left out, so that only progress is judged.
struct LoopCase {
    const char* name;
    uint32_t requests, max_prompt, max_output, budget, seats, blocks, block_size;
    bool chunked;
    uint32_t threshold;
    std::vector<uint32_t> windows = {0}; // of the KV groups; 0: it keeps all
    uint32_t state_pages = 0;
    bool in_flight = false; // a step is planned while the one before is on the device
};
struct LoopResult {
    std::vector<Planned> plans;
    std::vector<uint64_t> unfinished;
};
std::vector<LoopCase> loop_cases();
Result<LoopResult> run_loop(const host::Component&, LentMemory&, const LoopCase&, uint32_t max_steps);

}  // namespace patchbay::conformance
