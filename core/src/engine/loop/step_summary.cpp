#include "engine/loop/step_summary.hpp"

#include <algorithm>
#include <utility>

#include "engine/loop/step_context.hpp"
#include "engine/placement/preemption.hpp"
#include "engine/placement/pressure.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/structured_output.hpp"
#include "execution/pass_stats.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void StepSummary::note_pass() {
    StepReport& report = p_.context.report;
    const execution::PassStats stats = p_.executor.stats();
    report.calls.forward = stats.times;
    report.calls.sample_ns += stats.times.sampler;
    report.graph.replayed = stats.graph.miss == runner::GraphMiss::kNone;
    report.graph.miss = name_of(stats.graph.miss);
    report.graph.size = stats.graph.size;
    report.graph.padded_tokens = stats.graph.padded_tokens;
    report.graph.capture_ns = stats.graph.capture_ns;
    report.graph.captured = stats.graphs;
    report.graph.bytes = stats.graph_bytes;
    report.broadcast_bytes = stats.broadcast_bytes;
    report.broadcast_ns = stats.broadcast_ns;
}

void StepSummary::note_queue(uint64_t now_ns) {
    StepReport& report = p_.context.report;
    const auto waiting = p_.sequences.waiting().records();
    report.queues.running_requests = static_cast<uint32_t>(p_.sequences.running().size());
    report.queues.waiting_requests = static_cast<uint32_t>(waiting.size());
    report.queues.waiting_tokens = p_.sequences.waiting_tokens();
    uint64_t oldest = now_ns;
    for (const pb_sequence& r : waiting) {
        oldest = std::min(oldest, r.arrival_us * 1000);
        if (r.preemptions == 0 && r.id == r.group) break; // after preempted ones and siblings: in order of arrival
    }
    report.queues.oldest_wait_ns = now_ns - oldest;
}

void StepSummary::note_pages() {
    StepReport& report = p_.context.report;
    const kv::BlockPool& blocks = p_.kv.pool();
    report.kv.total_pages = blocks.total();
    report.kv.used_pages = blocks.used();
    report.kv.cached_pages = blocks.cached();
    for (size_t kind = 0; kind < kv::kGroupKinds; ++kind)
        report.kv.group_pages[kind] = p_.kv.used(static_cast<kv::GroupKind>(kind));
    for (const Sequence* s : p_.sequences.running()) {
        const kv::BlockTable& table = s->kv.table;
        const uint32_t gone = table.freed_prefix.empty() ? 0 : *std::ranges::min_element(table.freed_prefix);
        const uint32_t capacity = p_.kv.shape().capacity(table);
        report.kv.token_slots += (table.blocks - gone) * p_.kv.shape().block_size();
        report.kv.empty_slots += capacity - std::min(capacity, s->computed + s->in_flight.tokens);
    }
    const uint64_t evicted = blocks.eviction().evictions(), chosen = blocks.eviction().chosen_evictions();
    report.kv.chosen_evictions = static_cast<uint32_t>(chosen - std::exchange(chosen_evictions_, chosen));
    report.kv.evicted_pages = static_cast<uint32_t>(evicted - std::exchange(evictions_, evicted));
    report.kv.residencies_ns = p_.kv.residencies().take();
    report.kv.watermark = p_.pressure.watermark();
    report.preemption.swap_pages = p_.kv.swap().space().total();
    report.preemption.used_swap_pages = p_.kv.swap().space().used();
    report.preemption.host_page_ns = p_.executor.page_copy_ns();
    report.preemption.token_ns = p_.preemption.token_ns();
}

void StepSummary::note_state() {
    const uint64_t now = p_.clock.now_ns();
    note_queue(now);
    note_pages();
    p_.structured_output.report_compiled(p_.context.report);
    p_.context.report.end_ns = now;
}

}  // namespace patchbay::engine
