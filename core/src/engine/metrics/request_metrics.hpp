// Metrics of requests: their latencies, lengths and ends. Part of EngineMetrics.
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/request/output.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

class RequestMetrics {
  public:
    explicit RequestMetrics(metrics::Metrics&);
    void on_request(RequestId, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n); // before its first step
    void on_output(const RequestOutput&);

  private:
    struct Timeline { // of one output of a request that is under way
        uint64_t arrival_ns, last_ns, first_ns;
        uint32_t prompt_tokens, output_tokens;
        bool ended;
    };
    struct Latencies {
        explicit Latencies(metrics::Metrics&);
        prometheus::Histogram &ttft, &itl, &tpot, &e2e, &queue;
    };
    struct LogitsSeries {
        explicit LogitsSeries(metrics::Metrics&);
        prometheus::Histogram &entropy, &max_logit, &first_share;
    };
    enum class Arrived { kAsStream, kWhole }; // whole: it was chosen among others, or its one token ended it

    void on_tokens(Timeline&, const RequestOutput&, Arrived);
    void on_end(const Timeline&, const RequestOutput&, Arrived);

    std::unordered_map<RequestId, std::vector<Timeline>> under_way_; // by index
    Latencies latencies_;
    LogitsSeries logits_;
    prometheus::Histogram &prompt_tokens_, &output_tokens_;
    prometheus::Counter& generated_;
    std::array<prometheus::Counter*, kFinishReasons> finished_{}, without_token_{}; // by FinishReason
};

}  // namespace patchbay::engine
