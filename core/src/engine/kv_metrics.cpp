#include "engine/kv_metrics.hpp"

#include <string>

namespace patchbay::engine {
namespace {

constexpr double kSecond = 1e9; // ns

}  // namespace

KvMetrics::KvMetrics(metrics::Metrics& m)
    : recomputed_(m.counter("patchbay_preemptions_total", {{"how", "recompute"}})),
      swapped_(m.counter("patchbay_preemptions_total", {{"how", "swap"}})),
      preempted_tokens_(m.counter("patchbay_preempted_tokens_total")),
      pages_out_(m.counter("patchbay_kv_swapped_pages_total", {{"direction", "out"}})),
      pages_in_(m.counter("patchbay_kv_swapped_pages_total", {{"direction", "in"}})),
      used_slots_(m.gauge("patchbay_kv_swap_pages", {{"state", "used"}})),
      free_slots_(m.gauge("patchbay_kv_swap_pages", {{"state", "free"}})),
      page_copy_(m.gauge("patchbay_kv_swap_page_seconds")),
      token_(m.gauge("patchbay_computed_token_seconds")),
      fragmentation_(m.gauge("patchbay_kv_fragmentation_ratio")),
      watermark_(m.gauge("patchbay_kv_watermark_ratio")),
      residency_(m.histogram("patchbay_kv_block_residency_seconds")) {
    for (size_t i = 0; i < kSwapFallbacks; ++i)
        fallbacks_[i] = &m.counter("patchbay_kv_swap_fallbacks_total",
                                   {{"reason", std::string(name_of(static_cast<SwapFallback>(i)))}});
}

KvMetrics::~KvMetrics() {
    for (prometheus::Gauge* now : {&used_slots_, &free_slots_, &page_copy_, &token_, &fragmentation_, &watermark_})
        now->Set(0);
}

void KvMetrics::on_step(const StepReport& r) {
    recomputed_.Increment(r.preemptions - r.swapped_out);
    swapped_.Increment(r.swapped_out);
    preempted_tokens_.Increment(static_cast<double>(r.preempted_tokens));
    pages_out_.Increment(r.pages_to_host);
    pages_in_.Increment(r.pages_to_device);
    for (size_t i = 0; i < kSwapFallbacks; ++i) fallbacks_[i]->Increment(r.swap_fallbacks[i]);
    used_slots_.Set(r.used_swap_pages);
    free_slots_.Set(r.swap_pages - r.used_swap_pages);
    page_copy_.Set(r.host_page_ns / kSecond);
    token_.Set(r.token_ns / kSecond);
    fragmentation_.Set(r.token_slots ? static_cast<double>(r.empty_slots) / static_cast<double>(r.token_slots) : 0);
    watermark_.Set(r.watermark);
    for (const uint64_t ns : r.residencies_ns) residency_.Observe(static_cast<double>(ns) / kSecond);
}

}  // namespace patchbay::engine
