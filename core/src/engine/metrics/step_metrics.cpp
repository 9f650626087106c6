#include "engine/metrics/step_metrics.hpp"

#include <string>

#include "engine/metrics/seconds.hpp"

namespace patchbay::engine {

StepMetrics::StepMetrics(metrics::Metrics& m)
    : all_(m), steps_(m.counter("patchbay_steps_total")),
      prefill_(m.counter("patchbay_scheduled_tokens_total", {{"kind", "prefill"}})),
      decode_(m.counter("patchbay_scheduled_tokens_total", {{"kind", "decode"}})),
      trimmed_(m.counter("patchbay_trimmed_items_total")), forked_(m.counter("patchbay_forked_sequences_total")),
      broadcast_bytes_(m.counter("patchbay_broadcast_bytes_total")),
      broadcast_seconds_(m.counter("patchbay_broadcast_seconds_total")), seconds_(m.histogram("patchbay_step_seconds")),
      tokens_(m.histogram("patchbay_step_tokens")), sequences_(m.histogram("patchbay_step_sequences")) {
    for (size_t i = 0; i < kPhaseCount; ++i)
        phases_[i] =
            &m.counter("patchbay_step_phase_seconds_total", {{"phase", std::string(name_of(static_cast<Phase>(i)))}});
}

void StepMetrics::on_step(const StepReport& r) {
    const ScheduledWork& work = r.work;
    steps_.Increment();
    for (size_t i = 0; i < kPhaseCount; ++i) phases_[i]->Increment(seconds(r.phase_ns[i]));
    broadcast_bytes_.Increment(static_cast<double>(r.broadcast_bytes));
    broadcast_seconds_.Increment(seconds(r.broadcast_ns));
    trimmed_.Increment(work.trimmed);
    forked_.Increment(work.forked);
    if (work.scheduled_seqs == 0) return;
    seconds_.Observe(seconds(since(r.start_ns, r.end_ns)));
    prefill_.Increment(work.prefill_tokens);
    decode_.Increment(work.decode_tokens);
    tokens_.Observe(work.scheduled_tokens);
    sequences_.Observe(work.scheduled_seqs);
    by_sync_reason(r.sync_reason).Increment();
}

prometheus::Counter& StepMetrics::by_sync_reason(std::string_view reason) {
    prometheus::Counter*& counter = by_sync_reason_[reason];
    if (!counter)
        counter = &all_.counter("patchbay_async_steps_total",
                                {{"depth", reason.empty() ? "1" : "0"}, {"reason", std::string(reason)}});
    return *counter;
}

}  // namespace patchbay::engine
