// orca - iteration-level scheduling: a batch changes with every step, prompts are computed whole, and a request is
// admitted when there is room for the longest output that it may make.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Orca {
  public:
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        uint64_t reserved = 0;
        for (const pb_sequence& s : step.running) reserved += pages_at_its_end(step, s);
        for (const pb_sequence& s : step.waiting) {
            const bool alone = step.running.empty() && plan.size() == 0; // else what is too large would never run
            const uint64_t pages = pages_at_its_end(step, s);
            const bool whole = patchbay::uncached(s) <= packer.tokens_left();
            const bool fits = whole && reserved + pages <= step.raw.total_blocks;
            if ((!fits && !alone) || !packer.admit(s)) break;
            reserved += pages;
        }
    }

  private:
    static uint64_t pages_at_its_end(const patchbay::SchedulerStep& step, const pb_sequence& s) {
        const uint64_t end = uint64_t{s.prompt_tokens} + s.max_tokens, now = uint64_t{s.computed_tokens} + s.in_flight;
        return uint64_t{s.blocks} + step.pages_for(s, static_cast<uint32_t>(end - std::min(end, now)));
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Orca>(
    {.name = "orca", .version = "1.0.0", .summary = "iteration-level: whole prompts, room reserved for the output"}))
