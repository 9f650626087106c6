#include "engine/metrics/kv_metrics.hpp"

#include "engine/facts.hpp"
#include "engine/metrics/seconds.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {
namespace {

double ratio(uint64_t part, uint64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

KvMetrics::KvMetrics(metrics::Metrics& m, const KvFacts& at_load)
    : used_(m.gauge("patchbay_kv_pages", {{"state", "used"}})),
      cached_(m.gauge("patchbay_kv_pages", {{"state", "cached"}})),
      free_(m.gauge("patchbay_kv_pages", {{"state", "free"}})),
      group_pages_{&m.gauge("patchbay_kv_group_pages", {{"kind", "full"}}),
                   &m.gauge("patchbay_kv_group_pages", {{"kind", "sliding"}}),
                   &m.gauge("patchbay_kv_group_pages", {{"kind", "recurrent"}})},
      utilisation_(m.gauge("patchbay_kv_utilisation_ratio")),
      fragmentation_(m.gauge("patchbay_kv_fragmentation_ratio")),
      watermark_(m.gauge("patchbay_kv_watermark_ratio")), evictions_(m.counter("patchbay_kv_evictions_total")),
      prefix_queries_(m.counter("patchbay_prefix_query_tokens_total")),
      prefix_hits_(m.counter("patchbay_prefix_hit_tokens_total")),
      page_copies_(m.counter("patchbay_kv_page_copies_total")),
      residency_(m.histogram("patchbay_kv_block_residency_seconds")) {
    free_.Set(at_load.num_blocks);
    watermark_.Set(at_load.watermark);
}

KvMetrics::~KvMetrics() {
    for (prometheus::Gauge* now : {&used_, &cached_, &free_, &utilisation_, &fragmentation_, &watermark_}) now->Set(0);
    for (prometheus::Gauge* pages : group_pages_) pages->Set(0);
}

void KvMetrics::on_step(const KvReport& r) {
    used_.Set(r.used_pages);
    cached_.Set(r.cached_pages);
    free_.Set(r.total_pages - r.used_pages - r.cached_pages);
    for (size_t kind = 0; kind < kv::kGroupKinds; ++kind) group_pages_[kind]->Set(r.group_pages[kind]);
    utilisation_.Set(ratio(r.used_pages, r.total_pages));
    fragmentation_.Set(ratio(r.empty_slots, r.token_slots));
    watermark_.Set(r.watermark);
    evictions_.Increment(r.evicted_pages);
    prefix_queries_.Increment(static_cast<double>(r.prefix_query_tokens));
    prefix_hits_.Increment(static_cast<double>(r.prefix_hit_tokens));
    page_copies_.Increment(r.copied_pages);
    for (const uint64_t ns : r.residencies_ns) residency_.Observe(seconds(ns));
}

}  // namespace patchbay::engine
