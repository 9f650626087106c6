#include "serve/serve_metrics.hpp"

namespace patchbay::serve {

void ServeMetrics::on_answer(std::string_view route, unsigned status) {
    const std::lock_guard lock(mutex_);
    prometheus::Counter*& counter = answers_[{std::string(route), status}];
    if (!counter)
        counter = &all_.counter("patchbay_http_requests_total",
                                {{"route", std::string(route)}, {"status", std::to_string(status)}});
    counter->Increment();
}

void ServeMetrics::on_rejection(const char* reason) {
    const std::lock_guard lock(mutex_);
    prometheus::Counter*& counter = rejections_[reason];
    if (!counter) counter = &all_.counter("patchbay_http_rejections_total", {{"reason", reason}});
    counter->Increment();
}

std::shared_ptr<void> ServeMetrics::open_stream() {
    streams_.Increment();
    return {&streams_, [](prometheus::Gauge* open) { open->Decrement(); }};
}

void ServeMetrics::scrape(size_t connections, size_t exchanges) {
    connections_.Set(static_cast<double>(connections));
    in_flight_.Set(static_cast<double>(exchanges));
}

}  // namespace patchbay::serve
