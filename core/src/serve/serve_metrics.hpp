// What the server counts of its own work, beside the engine's metrics.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/catalogue.hpp"

namespace patchbay::serve {

class ServeMetrics { // [any thread]
  public:
    explicit ServeMetrics(metrics::Metrics& all) : all_(all) {}

    void on_answer(std::string_view route, unsigned status);
    // busy, key_limit, draining, unauthorised, connections, too_large, malformed
    void on_rejection(const char* reason);
    std::shared_ptr<void> open_stream(); // counted as open while it is held; before this ends
    void on_new_build(const std::string& kind) {
        all_.counter("patchbay_plugin_new_builds_total", {{"kind", kind}}).Increment();
    }
    void on_tokenized(uint64_t ns) { tokenize_.Increment(static_cast<double>(ns) * 1e-9); }
    void scrape(size_t connections, size_t exchanges); // what is shown as it is now
    std::string text() const { return all_.text(); }

  private:
    metrics::Metrics& all_;
    prometheus::Gauge& connections_ = all_.gauge("patchbay_http_connections");
    prometheus::Gauge& streams_ = all_.gauge("patchbay_http_streams");
    prometheus::Gauge& in_flight_ = all_.gauge("patchbay_http_requests_in_flight");
    prometheus::Counter& tokenize_ = all_.counter("patchbay_tokenize_seconds_total");
    std::mutex mutex_;
    std::map<std::pair<std::string, unsigned>, prometheus::Counter*> answers_;
    std::map<std::string, prometheus::Counter*> rejections_;
};

}  // namespace patchbay::serve
