// The scheduler's checks: what a plan may say, that the same question gets the same answer, and that all work ends.
#include <algorithm>
#include <set>

#include "conformance/scheduler_case.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint32_t kMaxSteps = 4000; // of a closed loop; a policy needs a few hundred

std::string of_view(const View& v) {
    return " (" + std::to_string(v.running.size()) + " running, " + std::to_string(v.waiting.size()) +
           " waiting, budget " + std::to_string(v.in.max_num_batched_tokens) + " tokens and " +
           std::to_string(v.in.max_num_seqs) + " sequences)";
}

// Judges every view's plan by one rule, which says what is wrong or nothing.
template <class Rule>
Outcome judge(Subject& subject, Rule&& rule) {
    for (const View& view : views()) {
        PB_TRY(const Planned planned, plan_fresh(subject, view));
        if (const std::string wrong = rule(view, planned); !wrong.empty()) return fail(wrong + of_view(view));
    }
    return {};
}

Outcome answers(Subject& subject) {
    return judge(subject, [](const View&, const Planned&) { return std::string(); });
}

Outcome bounds(Subject& subject) {
    return judge(subject, [](const View&, const Planned& p) -> std::string {
        if (!p.within_bounds) return "it wrote past item_capacity or preempt_capacity";
        const auto zero = [](const auto& entry) { return entry.reserved == 0; };
        if (std::ranges::all_of(p.items, zero) && std::ranges::all_of(p.preempts, zero)) return "";
        return "it wrote into the reserved field of an item or a preemption, which later versions may give a meaning";
    });
}

Outcome known_ids(Subject& subject) {
    return judge(subject, [](const View& v, const Planned& p) {
        for (const pb_plan_item& i : p.items)
            if (!v.find(i.id)) return "it plans sequence " + std::to_string(i.id) + ", which it was not shown";
        return std::string();
    });
}

Outcome unique(Subject& subject) {
    return judge(subject, [](const View&, const Planned& p) {
        std::set<uint64_t> seen;
        for (const pb_plan_item& i : p.items)
            if (!seen.insert(i.id).second) return "it plans sequence " + std::to_string(i.id) + " twice";
        return std::string();
    });
}

Outcome budget(Subject& subject) {
    return judge(subject, [](const View& v, const Planned& p) {
        uint64_t tokens = 0;
        for (const pb_plan_item& i : p.items) tokens += i.tokens;
        if (tokens <= v.in.max_num_batched_tokens) return std::string();
        return "it plans " + std::to_string(tokens) + " tokens, more than max_num_batched_tokens";
    });
}

Outcome seats(Subject& subject) {
    return judge(subject, [](const View& v, const Planned& p) {
        std::set<uint64_t> running;
        for (const pb_sequence& s : v.running) running.insert(s.id);
        for (const pb_preempt_item& i : p.preempts) running.erase(i.id);
        for (const pb_plan_item& i : p.items)
            if (v.find(i.id)) running.insert(i.id);
        if (running.size() <= v.in.max_num_seqs) return std::string();
        return std::to_string(running.size()) + " sequences would run, more than max_num_seqs";
    });
}

Outcome tokens(Subject& subject) {
    return judge(subject, [](const View& v, const Planned& p) {
        for (const pb_plan_item& i : p.items) {
            const pb_sequence* s = v.find(i.id);
            if (i.tokens == 0) return "it plans no tokens for sequence " + std::to_string(i.id);
            if (s && i.tokens > remaining(*s))
                return "it plans " + std::to_string(i.tokens) + " tokens for sequence " + std::to_string(i.id) +
                       ", which needs " + std::to_string(remaining(*s)) +
                       (s->in_flight > 0 ? " beside the " + std::to_string(s->in_flight) + " in flight" : "");
        }
        return std::string();
    });
}

Outcome chunking(Subject& subject) {
    return judge(subject, [](const View& v, const Planned& p) {
        for (const pb_plan_item& i : p.items) {
            const pb_sequence* s = v.find(i.id);
            if (!s || v.runs(i.id) || i.tokens == 0) continue;
            const bool may_split = (v.in.flags & PB_STEP_CHUNKED_PREFILL) && !(s->flags & PB_SEQ_NO_CHUNK);
            const uint32_t whole = remaining(*s) - std::min(s->cached_tokens, remaining(*s) - 1);
            if (!may_split && i.tokens < whole)
                return "it plans " + std::to_string(i.tokens) + " of " + std::to_string(whole) +
                       " tokens of sequence " + std::to_string(i.id) + ", which may not be split";
        }
        return std::string();
    });
}

Outcome threshold(Subject& subject) {
    return judge(subject, [](const View& v, const Planned& p) {
        const uint32_t limit = v.in.long_prefill_token_threshold;
        for (const pb_plan_item& i : p.items) {
            const pb_sequence* s = v.find(i.id);
            if (limit == 0 || !s || i.tokens <= limit || decoding(*s) || s->flags & PB_SEQ_NO_CHUNK) continue;
            if (s->output_tokens > 0 || !(v.in.flags & PB_STEP_CHUNKED_PREFILL)) continue; // recomputed; kept whole
            return "it plans " + std::to_string(i.tokens) + " prompt tokens of sequence " + std::to_string(i.id) +
                   ", more than long_prefill_token_threshold, which is " + std::to_string(limit);
        }
        return std::string();
    });
}

Outcome preemptions(Subject& subject) {
    return judge(subject, [](const View& v, const Planned& p) {
        std::set<uint64_t> gone;
        for (const pb_preempt_item& i : p.preempts) {
            if (!v.runs(i.id)) return "it preempts sequence " + std::to_string(i.id) + ", which is not running";
            if (!gone.insert(i.id).second) return "it preempts sequence " + std::to_string(i.id) + " twice";
            if (i.how != PB_PREEMPT_RECOMPUTE && i.how != PB_PREEMPT_SWAP)
                return "it preempts in way " + std::to_string(i.how) + ", which there is none";
        }
        for (const pb_plan_item& i : p.items)
            if (gone.contains(i.id)) return "it preempts sequence " + std::to_string(i.id) + " and plans it";
        return std::string();
    });
}

Outcome stride(Subject& subject) {
    for (const View& view : views()) {
        PB_TRY(const Planned exact, plan_fresh(subject, view));
        PB_TRY(const Planned longer, plan_fresh(subject, view, 48));
        if (!same(exact, longer))
            return fail("it plans differently when the host's records are larger: step by sequence_stride, item_stride "
                        "and preempt_stride" +
                        of_view(view));
    }
    return {};
}

Outcome deterministic(Subject& subject) {
    for (const View& view : views()) {
        PB_TRY(const Planned first, plan_fresh(subject, view));
        PB_TRY(const Planned second, plan_fresh(subject, view));
        if (!same(first, second)) return fail("two fresh objects plan the same view differently" + of_view(view));
    }
    for (const LoopCase& l : loop_cases()) {
        PB_TRY(auto first, subject.make());
        PB_TRY(auto second, subject.make());
        PB_TRY(const LoopResult a, run_loop(*first, subject.lent(), l, 64));
        PB_TRY(const LoopResult b, run_loop(*second, subject.lent(), l, 64));
        for (size_t i = 0; i < std::min(a.plans.size(), b.plans.size()); ++i)
            if (!same(a.plans[i], b.plans[i]))
                return fail("two fresh objects part ways at step " + std::to_string(i) + " of '" + l.name + "'");
    }
    return {};
}

// A fresh object's plans.
Result<std::vector<Planned>> plans_of(Subject& subject, LentMemory& memory, const LoopCase& l) {
    PB_TRY(auto component, subject.make());
    PB_TRY(LoopResult result, run_loop(*component, memory, l, 64));
    return std::move(result.plans);
}

Outcome lifetimes(Subject& subject) {
    for (const LoopCase& l : loop_cases()) {
        LentMemory left(LentMemory::After::kLeft);
        PB_TRY(const auto a, plans_of(subject, left, l));
        PB_TRY(const auto again, plans_of(subject, left, l));
        if (!std::ranges::equal(a, again, same)) return Outcome::skip("two fresh objects plan differently");
        PB_TRY(const auto b, plans_of(subject, subject.lent(), l));
        if (const auto part = std::ranges::mismatch(a, b, same); part.in1 != a.end() || part.in2 != b.end())
            return fail("at step " + std::to_string(part.in1 - a.begin()) + " of '" + l.name +
                        "' it plans otherwise where views are overwritten after their call: it keeps a pointer");
    }
    return {};
}

// "'few seats' (1000 pages of 16 tokens, 64 tokens and 3 sequences a step)".
std::string of_world(const LoopCase& l) {
    return "'" + std::string(l.name) + "' (" + std::to_string(l.blocks) + " pages of " + std::to_string(l.block_size) +
           " tokens, " + std::to_string(l.budget) + " tokens and " + std::to_string(l.seats) + " sequences a step" +
           (l.chunked ? "" : ", prompts may not be split") + ")";
}

Outcome progress(Subject& subject) {
    for (const LoopCase& l : loop_cases()) {
        PB_TRY(auto component, subject.make());
        PB_TRY(const LoopResult result, run_loop(*component, subject.lent(), l, kMaxSteps));
        if (!result.unfinished.empty())
            return fail(std::to_string(result.unfinished.size()) + " of " + std::to_string(l.requests) +
                        " requests have not ended after " + std::to_string(kMaxSteps) + " steps of " + of_world(l) +
                        "; the last plan has " + std::to_string(result.plans.back().items.size()) +
                        " sequences and preempts " + std::to_string(result.plans.back().preempts.size()));
    }
    return {};
}

constexpr Check kChecks[] = {
    {"scheduler.answers", "plans every view without an error", answers},
    {"scheduler.bounds",
     "writes at most item_capacity items and preempt_capacity preemptions, and nothing into reserved fields", bounds},
    {"scheduler.known_ids", "plans only sequences that it was shown", known_ids},
    {"scheduler.unique", "plans a sequence once", unique},
    {"scheduler.budget", "plans at most max_num_batched_tokens", budget},
    {"scheduler.seats", "lets at most max_num_seqs run", seats},
    {"scheduler.tokens", "plans at least one token, and none that is not needed or is in flight", tokens},
    {"scheduler.chunking", "splits no prompt that may not be split", chunking},
    {"scheduler.threshold", "plans no more of a prompt than long_prefill_token_threshold", threshold},
    {"scheduler.preemptions", "preempts what runs, once, and does not plan it", preemptions},
    {"scheduler.stride", "steps from record to record by sequence_stride, item_stride and preempt_stride", stride},
    {"scheduler.deterministic", "plans the same for the same view and history", deterministic},
    {"scheduler.lifetimes", "keeps no pointer past the call that it came with", lifetimes},
    {"scheduler.progress", "brings every request to its end", progress},
};

Result<> exercise(Subject& subject, const host::Component& component) {
    PB_CHECK(run_loop(component, subject.lent(), loop_cases()[1], 20));
    return {};
}

}  // namespace

const Suite kScheduler{kChecks, exercise};

}  // namespace patchbay::conformance
