// patchbay/sdk/scheduler.hpp - a scheduling policy as a class:
//   class Mine { void plan(const patchbay::SchedulerStep&, patchbay::Plan&); };
//   PATCHBAY_PLUGIN(patchbay::scheduler<Mine>({.name = "mine", .version = "1.0.0", .summary = "…"}))
// Optional members: arrived(const pb_sequence&), finished(const pb_finished&),
// resync(step), save, load, kParams.
#pragma once
#include <algorithm>
#include <cassert>

#include "patchbay/abi/scheduler.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

using Sequences = Rows<pb_sequence>; // as the host lays them out; its records may be larger or smaller than ours

// Tokens that a sequence still has to compute: all but one are prompt (or regenerated) tokens.
inline uint32_t remaining(const pb_sequence& s) {
    return s.prompt_tokens + s.output_tokens + s.draft_tokens - s.computed_tokens - s.in_flight;
}

// Of these, for one that waits, so many as the prefix cache does not have; at least one.
inline uint32_t uncached(const pb_sequence& s) { return remaining(s) - std::min(s.cached_tokens, remaining(s) - 1); }

// True once the prompt is computed: it makes one token a step (or verifies drafts).
inline bool decoding(const pb_sequence& s) {
    return s.computed_tokens + s.in_flight + s.draft_tokens + 1 >= s.prompt_tokens + s.output_tokens + s.draft_tokens;
}

struct SchedulerStep {
    explicit SchedulerStep(const pb_scheduler_in& in)
        : raw(in), running(in.running, in.running_count, in.sequence_stride),
          waiting(in.waiting, in.waiting_count, in.sequence_stride) {}

    bool chunked() const { return raw.flags & PB_STEP_CHUNKED_PREFILL; }

    // An upper bound of the free pages that n more tokens of s take, after `cached` ones (its cached_tokens) that are
    // found in the prefix cache: those of them that others hold are free for it.
    uint32_t pages_for(const pb_sequence& s, uint32_t n, uint32_t cached = 0) const {
        const uint64_t wanted = uint64_t{n} + cached;
        if (wanted <= s.tokens_until_next_page) return s.pages == 0 && wanted > 0 ? raw.state_pages : 0;
        const uint64_t blocks = (wanted - s.tokens_until_next_page + raw.block_size - 1) / raw.block_size;
        uint64_t pages = s.pages == 0 ? raw.state_pages : 0;
        for (uint32_t g = 0; g < raw.kv_groups; ++g) {
            const uint64_t window = raw.group_windows ? raw.group_windows[g] : 0;
            // Any of the n sees these tokens; they touch one page more where they begin in the midst of one.
            const uint64_t tokens = std::max<uint64_t>(n + window, 2) - 1;
            const uint64_t seen = (tokens + raw.block_size - 2) / raw.block_size + 1;
            pages += window > 0 ? std::min(blocks, seen) : blocks;
        }
        if (cached > 0) pages -= std::min<uint64_t>(pages, s.cached_pages_in_use);
        return static_cast<uint32_t>(std::min<uint64_t>(pages, UINT32_MAX));
    }

    // The most tokens, up to n, for which so many pages are sure to do; 0: none.
    uint32_t tokens_in(const pb_sequence& s, uint32_t n, uint32_t pages, uint32_t cached = 0) const {
        if (pages_for(s, n, cached) <= pages) return n;
        uint32_t low = 0, high = n; // so many fit, so many do not
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            (pages_for(s, middle, cached) <= pages ? low : high) = middle;
        }
        return low;
    }

    const pb_scheduler_in& raw;
    Sequences running, waiting;
};

class Plan {
  public:
    explicit Plan(pb_scheduler_out& out) : out_(&out) { out.item_count = out.preempt_count = 0; }

    void run(const pb_sequence& s, uint32_t tokens) {
        if (out_->item_count == out_->item_capacity) throw Error(PB_FAILED, "plan exceeds max_num_seqs");
        set(out_->item_count++, {s.id, tokens, 0});
    }
    void preempt(const pb_sequence& s, pb_preemption how = PB_PREEMPT_RECOMPUTE) {
        if (out_->preempt_count == out_->preempt_capacity) throw Error(PB_FAILED, "preempts more than are running");
        write_row(out_->preempts, out_->preempt_count++, out_->preempt_stride, {s.id, how, 0});
    }
    uint32_t size() const { return out_->item_count; }

    // Takes the last planned item of sequence id back; false if it is not planned.
    bool drop(uint64_t id, uint32_t* tokens) {
        for (uint32_t i = 0; i < out_->item_count; ++i) {
            if (at(i).id != id) continue;
            *tokens = at(i).tokens;
            for (; i + 1 < out_->item_count; ++i) set(i, at(i + 1));
            out_->item_count -= 1;
            return true;
        }
        return false;
    }

  private:
    pb_plan_item at(uint32_t i) const {
        return widened<pb_plan_item>(reinterpret_cast<const char*>(out_->items) + size_t{i} * out_->item_stride,
                                     out_->item_stride);
    }
    void set(uint32_t i, const pb_plan_item& item) { write_row(out_->items, i, out_->item_stride, item); }
    pb_scheduler_out* out_;
};

template <class T>
concept SchedulerLike = requires(T t, const SchedulerStep& step, Plan& plan) { t.plan(step, plan); };

namespace detail {

template <SchedulerLike T>
struct SchedulerTable {
    static pb_status plan(void* self, const pb_scheduler_in* in, pb_scheduler_out* out) {
        return enter<T>(self, [&](T& t) {
            const Whole whole_in(in);
            WholeInOut whole_out(out);
            Plan p(*whole_out);
            t.plan(SchedulerStep(*whole_in), p);
        });
    }
    static void arrived(void* self, const pb_sequence* s, uint32_t size) {
        notify<T>(self, "arrived", [&](T& t) {
            if constexpr (kArrived) t.arrived(*Whole(s, size));
        });
    }
    static void finished(void* self, const pb_finished* finished) {
        notify<T>(self, "finished", [&](T& t) {
            if constexpr (kFinished) t.finished(*Whole(finished));
        });
    }
    static void resync(void* self, const pb_scheduler_in* in) {
        notify<T>(self, "resync", [&](T& t) {
            if constexpr (kResync) {
                const Whole whole(in);
                t.resync(SchedulerStep(*whole));
            }
        });
    }
    static constexpr bool kArrived = requires(T t, const pb_sequence& s) { t.arrived(s); };
    static constexpr bool kFinished = requires(T t, const pb_finished& f) { t.finished(f); };
    static constexpr bool kResync = requires(T t, const SchedulerStep& s) { t.resync(s); };
    static constexpr pb_scheduler table{sizeof(pb_scheduler), 0, plan, kArrived ? arrived : nullptr,
                                        kFinished ? finished : nullptr, kResync ? resync : nullptr};
    static_assert(kArrived || !PB_HAS_MEMBER(T, arrived), "arrived is: void arrived(const pb_sequence&)");
    static_assert(kFinished || !PB_HAS_MEMBER(T, finished), "finished is: void finished(const pb_finished&)");
    static_assert(kResync || !PB_HAS_MEMBER(T, resync), "resync is: void resync(const patchbay::SchedulerStep&)");
    static_assert(!PB_HAS_MEMBER(T, arrive) && !PB_HAS_MEMBER(T, on_arrived), "it is called arrived");
    static_assert(!PB_HAS_MEMBER(T, finish) && !PB_HAS_MEMBER(T, on_finished), "it is called finished");
    static_assert(!PB_HAS_MEMBER(T, sync) && !PB_HAS_MEMBER(T, re_sync), "it is called resync");
};

}  // namespace detail

template <SchedulerLike T>
constexpr pb_component scheduler(const About& about) {
    return detail::component<T, detail::SchedulerTable<T>>(PB_SCHEDULER, PB_SCHEDULER_REVISION, about);
}

}  // namespace patchbay
