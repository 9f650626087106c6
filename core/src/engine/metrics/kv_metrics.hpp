// Metrics of the KV pages and the prefix cache. Part of EngineMetrics.
#pragma once
#include <array>

#include "kv/groups.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct KvFacts;
struct KvReport;

class KvMetrics {
  public:
    KvMetrics(metrics::Metrics&, const KvFacts& at_load);
    ~KvMetrics(); // what is about the present ends with the engine
    void on_step(const KvReport&);

  private:
    prometheus::Gauge &used_, &cached_, &free_;
    std::array<prometheus::Gauge*, kv::kGroupKinds> group_pages_; // by kind
    prometheus::Gauge &utilisation_, &fragmentation_, &watermark_;
    prometheus::Counter &evictions_, &prefix_queries_, &prefix_hits_, &page_copies_;
    prometheus::Histogram& residency_;
};

}  // namespace patchbay::engine
