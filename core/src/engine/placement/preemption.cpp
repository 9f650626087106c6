#include "engine/placement/preemption.hpp"

#include <algorithm>
#include <utility>

#include "config/engine_config.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/sequence.hpp"
#include "engine/scheduling/admission.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void Preemption::preempt(Sequence& s, pb_preemption how) {
    if (s.is_beam()) {
        if (Sequence* first = p_.beams.preempt(s)) p_.admission.put_first(*first);
        return;
    }
    StepReport& report = p_.context.report;
    report.preemption.preemptions += 1;
    p_.admission.leave(s);
    s.drop_drafts();
    if (swap_out(s, how)) {
        report.preemption.swapped_out += 1;
    } else {
        report.preemption.preempted_tokens += s.computed;
        p_.kv.tables().release(s.kv.table);
    }
    s.computed = 0;
    s.record.preemptions += 1;
    p_.admission.put_first(s);
    if (s.has_siblings()) p_.hints.refresh_siblings(s.group);
}

void Preemption::forget_writes(Sequence& s) {
    s.in_flight = {};
    p_.kv.prefixes().forget(s.kv.table);
}

void Preemption::compute_anew(Sequence& s) {
    forget_writes(s);
    // Nothing of it is worth a place in host memory.
    p_.context.report.preemption.preempted_tokens += std::exchange(s.computed, 0);
    preempt(s, PB_PREEMPT_RECOMPUTE);
    p_.beams.may_be_placed(s); // by the plan of the step that begins
}

// Nothing that a step in flight writes is copied: that step is back before one of its sequences is preempted.
bool Preemption::swap_out(Sequence& s, pb_preemption how) {
    const config::PreemptionMode mode = p_.settings.preemption_mode;
    if (mode == config::PreemptionMode::kRecompute || s.computed == 0) return false;
    if (s.kv.table.held == 0) return false; // a window has passed all of it
    const auto refuse = [&](SwapFallback reason) {
        p_.context.report.preemption.swap_fallbacks[static_cast<size_t>(reason)] += 1;
        return false;
    };
    if (mode == config::PreemptionMode::kAuto && how != PB_PREEMPT_SWAP) {
        if (!token_cost_.is_measured()) return refuse(SwapFallback::kUnmeasured);
        const double copying = 2.0 * s.kv.table.held * p_.executor.page_copy_ns(); // there and back
        if (copying >= s.computed * token_cost_.ns_a_token()) return refuse(SwapFallback::kDearer);
    }
    if (!p_.kv.swap().out(s.kv.table, s.computed, s.kv.swapped)) return refuse(SwapFallback::kFull);
    p_.draft_kv.swapped_out(s);
    return true;
}

bool Preemption::swap_in(Sequence& s) {
    if (!p_.kv.swap().in(s.kv.swapped, s.tokens, s.kv.swapped.tokens + 1, s.kv.table)) return false;
    s.computed = s.kv.swapped.tokens;
    return true;
}

bool Preemption::lacks_pages() const {
    uint64_t wanted = 0;
    for (const Sequence* s : p_.sequences.running()) {
        if (s->idle) continue;
        wanted += p_.kv.shape().lacking(s->kv.table, s->confirmed() + s->in_flight.placeholders);
        if (s->has_siblings()) wanted += p_.kv.tables().shared_pages(s->kv.table, s->computed + s->in_flight.tokens);
    }
    return wanted > p_.kv.pool().free();
}

void Preemption::note_step(uint32_t tokens, uint32_t host_pages, uint64_t ns) {
    const auto copying = static_cast<uint64_t>(host_pages * p_.executor.page_copy_ns());
    token_cost_.step(tokens, ns - std::min(ns, copying));
}

}  // namespace patchbay::engine
