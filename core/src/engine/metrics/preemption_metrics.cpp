#include "engine/metrics/preemption_metrics.hpp"

#include <string>

#include "engine/facts.hpp"

namespace patchbay::engine {
namespace {

constexpr double kSecond = 1e9; // ns

}  // namespace

PreemptionMetrics::PreemptionMetrics(metrics::Metrics& m, const KvFacts& at_load)
    : recomputed_(m.counter("patchbay_preemptions_total", {{"how", "recompute"}})),
      swapped_(m.counter("patchbay_preemptions_total", {{"how", "swap"}})),
      tokens_(m.counter("patchbay_preempted_tokens_total")),
      pages_out_(m.counter("patchbay_kv_swapped_pages_total", {{"direction", "out"}})),
      pages_in_(m.counter("patchbay_kv_swapped_pages_total", {{"direction", "in"}})),
      used_pages_(m.gauge("patchbay_kv_swap_pages", {{"state", "used"}})),
      free_pages_(m.gauge("patchbay_kv_swap_pages", {{"state", "free"}})),
      page_copy_(m.gauge("patchbay_kv_swap_page_seconds")), token_(m.gauge("patchbay_computed_token_seconds")) {
    free_pages_.Set(at_load.swap_pages);
    for (size_t i = 0; i < kSwapFallbacks; ++i)
        fallbacks_[i] = &m.counter("patchbay_kv_swap_fallbacks_total",
                                   {{"reason", std::string(name_of(static_cast<SwapFallback>(i)))}});
}

PreemptionMetrics::~PreemptionMetrics() {
    for (prometheus::Gauge* now : {&used_pages_, &free_pages_, &page_copy_, &token_}) now->Set(0);
}

void PreemptionMetrics::on_step(const PreemptionReport& r) {
    recomputed_.Increment(r.preemptions - r.swapped_out);
    swapped_.Increment(r.swapped_out);
    tokens_.Increment(static_cast<double>(r.preempted_tokens));
    pages_out_.Increment(r.pages_to_host);
    pages_in_.Increment(r.pages_to_device);
    for (size_t i = 0; i < kSwapFallbacks; ++i) fallbacks_[i]->Increment(r.swap_fallbacks[i]);
    used_pages_.Set(r.used_swap_pages);
    free_pages_.Set(r.swap_pages - r.used_swap_pages);
    page_copy_.Set(r.host_page_ns / kSecond);
    token_.Set(r.token_ns / kSecond);
}

}  // namespace patchbay::engine
