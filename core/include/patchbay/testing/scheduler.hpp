// patchbay/testing/scheduler.hpp - a scheduler that is shown a step and plans it.
#pragma once
#include <map>
#include <vector>

#include "patchbay/sdk/scheduler.hpp"
#include "patchbay/testing/component.hpp"

namespace patchbay::testing {

// One that waits, with a prompt of its own.
inline pb_sequence waiting(uint64_t id, uint32_t prompt_tokens, uint64_t arrival_us = 0) {
    pb_sequence s{};
    s.id = s.group = id;
    s.arrival_us = arrival_us;
    s.prompt_tokens = prompt_tokens;
    s.max_tokens = 16;
    return s;
}

// One whose prompt is computed and which has made some tokens (1 at least), in pages of block_size tokens.
inline pb_sequence decoding(uint64_t id, uint32_t prompt_tokens, uint32_t output_tokens = 1, uint32_t block_size = 16) {
    pb_sequence s = waiting(id, prompt_tokens);
    s.output_tokens = output_tokens;
    s.computed_tokens = prompt_tokens + output_tokens - 1;
    s.pages = s.pages_freed_if_preempted = (s.computed_tokens + block_size - 1) / block_size;
    s.tokens_until_next_page = s.pages * block_size - s.computed_tokens;
    return s;
}

struct Step { // what a scheduler is shown
    uint64_t number = 0, now_us = 1'000'000;
    uint32_t max_num_batched_tokens = 2048, max_num_seqs = 64, block_size = 16;
    uint32_t free_pages = 1000, total_pages = 1000, watermark_pages = 0;
    uint32_t long_prefill_token_threshold = 0;
    uint32_t flags = PB_STEP_CHUNKED_PREFILL;
    std::vector<pb_sequence> running, waiting; // in order of admission, of arrival
};

struct Planned {
    std::vector<pb_plan_item> items;       // in the order in which pages are given out
    std::vector<pb_preempt_item> preempts; // before these
    // Of sequence id; 0: it is not planned.
    uint32_t tokens(uint64_t id) const {
        for (const pb_plan_item& i : items)
            if (i.id == id) return i.tokens;
        return 0;
    }
    bool preempts_sequence(uint64_t id) const {
        return std::any_of(preempts.begin(), preempts.end(), [&](const pb_preempt_item& p) { return p.id == id; });
    }
};

class Scheduler : public Subject {
  public:
    explicit Scheduler(const Plugin& plugin, const Settings& settings = {}, std::string_view name = {})
        : Subject(plugin, PB_SCHEDULER, settings, name) {}

    // Throws Error for what the plugin reports, and where it counts more than there is room for.
    Planned plan(const Step& step) {
        const pb_scheduler_in in = wire(step);
        Planned out;
        out.items.resize(step.max_num_seqs);
        out.preempts.resize(step.running.size());
        auto answer = sized<pb_scheduler_out>();
        answer.item_stride = sizeof(pb_plan_item);
        answer.preempt_stride = sizeof(pb_preempt_item);
        answer.items = out.items.data();
        answer.preempts = out.preempts.data();
        answer.item_capacity = step.max_num_seqs;
        answer.preempt_capacity = in.running_count;
        component.check(table().plan(component.self(), &in, &answer));
        if (answer.item_count > answer.item_capacity || answer.preempt_count > answer.preempt_capacity)
            throw Error(PB_FAILED, "no room for a plan of " + std::to_string(answer.item_count) + " items and " +
                                       std::to_string(answer.preempt_count) + " preemptions");
        out.items.resize(answer.item_count);
        out.preempts.resize(answer.preempt_count);
        return out;
    }
    // Notifications; a scheduler that does not want one gets none.
    void arrived(const pb_sequence& s) {
        if (table().arrived) table().arrived(component.self(), &s, sizeof s);
    }
    void finished(uint64_t id, uint32_t output_tokens, pb_finish_reason reason = PB_FINISH_STOP) {
        auto said = sized<pb_finished>();
        said.id = id;
        said.output_tokens = output_tokens;
        said.reason = reason;
        if (table().finished) table().finished(component.self(), &said);
    }
    void resync(const Step& step) {
        const pb_scheduler_in in = wire(step);
        if (table().resync) table().resync(component.self(), &in);
    }

  private:
    const pb_scheduler& table() const { return component.table<pb_scheduler>(); }
    static pb_scheduler_in wire(const Step& step) { // points into the step
        auto in = sized<pb_scheduler_in>();
        in.sequence_stride = sizeof(pb_sequence);
        in.step = step.number;
        in.now_us = step.now_us;
        in.max_num_batched_tokens = step.max_num_batched_tokens;
        in.max_num_seqs = step.max_num_seqs;
        in.block_size = step.block_size;
        in.kv_groups = 1;
        in.free_pages = step.free_pages;
        in.total_pages = step.total_pages;
        in.watermark_pages = step.watermark_pages;
        in.flags = step.flags;
        in.running = step.running.data();
        in.running_count = static_cast<uint32_t>(step.running.size());
        in.waiting = step.waiting.data();
        in.waiting_count = static_cast<uint32_t>(step.waiting.size());
        in.long_prefill_token_threshold = step.long_prefill_token_threshold;
        return in;
    }
};

}  // namespace patchbay::testing
