// orca - iteration-level scheduling: a batch changes with every step, prompts are computed whole, and a request is
// admitted when there are pages for its longest possible output.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Orca {
  public:
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        uint64_t reserved = 0; // free pages that running requests may still take
        for (const pb_sequence& s : step.running) reserved += pages_to_come(step, s);
        for (const pb_sequence& s : step.waiting) {
            const bool alone = step.running.empty() && plan.size() == 0; // too large prompts would never run otherwise
            const uint64_t pages = pages_to_come(step, s);
            const bool whole = patchbay::uncached(s) <= packer.tokens_left();
            const bool fits = whole && reserved + pages <= step.raw.free_pages;
            if ((!fits && !alone) || !packer.admit(s)) break;
            reserved += pages;
        }
    }

  private:
    // The maximum of pages that it takes until its longest output is done; for waiting beams, of the whole search.
    static uint64_t pages_to_come(const patchbay::SchedulerStep& step, const pb_sequence& s) {
        const uint64_t end = uint64_t{s.prompt_tokens} + s.max_tokens, now = uint64_t{s.computed_tokens} + s.in_flight;
        const bool waits = now == 0 && s.pages == 0;
        if (s.beams > 0 && !waits) return pages_of_its_own(step, end, now);
        const uint32_t cached = waits ? patchbay::remaining(s) - patchbay::uncached(s) : 0;
        const auto left = static_cast<uint32_t>(end - std::min(end, now + cached));
        const uint64_t alone = step.pages_for(s, left, cached);
        if (s.beams == 0) return std::min(alone, pages_in_windows(step, s, uint64_t{left} + cached));
        return alone + (s.beams - 1) * pages_of_its_own(step, end, s.prompt_tokens);
    }

    // For so many tokens, where windows give pages back: of their groups the maximum that it holds at a time, which is
    // that of the window, a step in flight and the next one. Pages that it holds now may be others', too: all count.
    static uint64_t pages_in_windows(const patchbay::SchedulerStep& step, const pb_sequence& s, uint64_t tokens) {
        const uint64_t size = step.raw.block_size, room = s.tokens_until_next_page;
        const uint64_t blocks = (tokens - std::min(tokens, room) + size - 1) / size;
        uint64_t pages = s.pages == 0 ? step.raw.state_pages : 0;
        for (uint32_t g = 0; g < step.raw.kv_groups; ++g) {
            const uint64_t window = step.raw.group_windows ? step.raw.group_windows[g] : 0;
            const uint64_t seen = window + 2 * uint64_t{step.raw.max_num_batched_tokens} - 1;
            pages += window > 0 ? std::min(blocks, (seen + size - 2) / size + 1) : blocks;
        }
        return pages;
    }

    // A beam shares at most the full pages of its computed tokens with others.
    static uint64_t pages_of_its_own(const patchbay::SchedulerStep& step, uint64_t end, uint64_t now) {
        const uint64_t size = step.raw.block_size, blocks = (end + size - 1) / size;
        return (blocks - std::min(blocks, now / size)) * step.raw.kv_groups;
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Orca>(
    {.name = "orca", .version = "1.0.0", .summary = "iteration-level: whole prompts, room reserved for the output"}))
