#include "engine/placement/placement.hpp"

#include <algorithm>
#include <utility>

#include "config/engine_config.hpp"
#include "engine/groups/siblings.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/placement/preemption.hpp"
#include "engine/placement/pressure.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/scheduling/admission.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "engine/scheduling/scheduler_port.hpp"
#include "engine/step_report.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void Placement::apply(const StepPlan& plan) {
    placed_.clear();
    if (!plan.preemptions.empty() && p_.preemption.lacks_pages())
        p_.context.report.preemption.preempted_for_memory += static_cast<uint32_t>(plan.preemptions.size());
    prompt_rows_left_ = p_.prompt_logprobs.max_rows();
    for (const StepPlan::Preemption& item : plan.preemptions) p_.preemption.preempt(*item.sequence, item.how);
    for (const StepPlan::Item& item : plan.items) place(*item.sequence, item.tokens);
    if (p_.settings.adaptive_watermark && !placed_.empty())
        p_.pressure.step(p_.context.report.preemption.preempted_for_memory);
}

void Placement::place(Sequence& s, uint32_t tokens) {
    StepReport& report = p_.context.report;
    if (p_.beams.preempted_now(s)) return;
    const bool admission = s.place == Place::kWaiting;
    const bool comes_back = admission && !s.kv.swapped.empty();
    // Beams take their seats together, also before one that the same plan admits.
    const auto returns = [&] { return finds_all_pages(s) && p_.preemption.swap_in(s); };
    if (admission && (!p_.beams.room().has_room(s) || (comes_back && !returns()))) {
        report.work.trimmed += 1;
        return;
    }
    Adopted adopted;
    if (admission && !comes_back) {
        adopted = adopt(s);
        s.computed = adopted.tokens;
        p_.draft_kv.admitted(s);
    }
    // With a step in flight: as if it were back, and its token there.
    const uint32_t begin = s.computed + s.in_flight.tokens, known = s.confirmed() + s.in_flight.placeholders;
    const uint32_t wanted =
        p_.prompt_logprobs.tokens_within(s, begin, std::min(tokens, s.remaining()), prompt_rows_left_);
    const uint32_t n = p_.kv.tables().fitting(s.kv.table, begin, wanted);
    report.work.trimmed += n < wanted;
    const bool split = begin + n < known && !p_.settings.enable_chunked_prefill;
    const bool stays = admission && (split || (!comes_back && !finds_all_pages(s)));
    if (n == 0 || stays || !p_.kv.tables().grow(s.kv.table, begin + n)) {
        if (admission) stay_waiting(s);
        return;
    }
    if (admission) admit(s, adopted);
    if (s.has_siblings()) p_.kv.tables().copy_on_write(s.kv.table, begin);
    const uint32_t end = begin + n;
    p_.kv.prefixes().cache_full_blocks(s.kv.table, {s.tokens.data(), std::min(end, s.confirmed())});
    const uint32_t rows = end >= known && !s.request->pooling ? end - known + 1 : 0;
    placed_.push_back({&s, n, known, rows, p_.prompt_logprobs.rows(s, begin, end)});
    prompt_rows_left_ -= placed_.back().prompt_rows;
    // A prompt's last token is prefill.
    const bool decodes = s.outputs() + s.in_flight.placeholders > 0 && begin + 1 >= known;
    (decodes ? report.work.decode_tokens : report.work.prefill_tokens) += n;
}

Placement::Adopted Placement::adopt(Sequence& s) {
    const Sequence* const source = p_.siblings.source_of(s);
    const std::span<const TokenId> findable = p_.hints.findable(s);
    const uint32_t prompt = s.prompt_count - 1;
    const uint32_t cached = s.kv.reads_prefixes ? p_.kv.prefixes().count_cached(findable, s.kv.salt) : 0;
    if (source && prompt > cached && p_.kv.tables().fork(source->kv.table, prompt, s.kv.table)) return {prompt, true};
    if (s.kv.reads_prefixes) return {p_.kv.prefixes().adopt(s.kv.table, findable, s.kv.salt), false};
    s.kv.table.salt = s.kv.salt; // others with this salt find what it computes
    return {0, false};
}

void Placement::admit(Sequence& s, const Adopted& adopted) {
    StepReport& report = p_.context.report;
    p_.admission.leave(s);
    p_.sequences.run(s);
    report.work.admitted += 1;
    report.preemption.swapped_in += !s.kv.swapped.empty();
    p_.kv.swap().drop(s.kv.swapped);
    if (!std::exchange(s.record.admitted_once, true)) { // hits are counted once a request, retries never
        s.record.cached_tokens = adopted.tokens;
        s.record.first_scheduled_ns = report.start_ns;
        report.work.forked += adopted.forked;
        if (p_.kv.prefixes().enabled() && !adopted.forked && s.kv.reads_prefixes) {
            report.kv.prefix_query_tokens += s.confirmed();
            report.kv.prefix_hit_tokens += adopted.tokens;
            p_.kv.prefixes().note_hits(s.kv.table, adopted.tokens);
        }
    }
    for (Sequence* beam : p_.beams.seat(s)) p_.scheduler.arrived(record_of(*beam, {}, p_.kv.shape().block_size()));
}

// What it was shown as cached may have gone since.
void Placement::stay_waiting(Sequence& s) {
    p_.kv.tables().release(s.kv.table);
    s.computed = 0;
    p_.hints.refresh(s);
}

bool Placement::finds_all_pages(const Sequence& s) const {
    const auto running = p_.sequences.running();
    if (!p_.settings.reserve_full_sequence || running.empty()) return true;
    const kv::BlockTable& there = s.kv.swapped.empty() ? s.kv.table : s.kv.swapped.slots;
    const auto lacks = [&](const kv::BlockTable& table, const Sequence& of) {
        return p_.kv.shape().lacking(table, of.confirmed() + of.in_flight.placeholders);
    };
    uint64_t wanted = lacks(there, s) + s.kv.swapped.slots.held;
    for (const Sequence* other : running)
        if (!other->idle) wanted += lacks(other->kv.table, *other);
    return wanted <= p_.kv.pool().free();
}

}  // namespace patchbay::engine
