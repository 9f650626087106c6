// vLLM's series in groups, by what they describe; VllmMetrics feeds each from what it hears of the engine.
#pragma once
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/request/request.hpp"
#include "engine/step_report.hpp"
#include "metrics/labels.hpp"

namespace patchbay::serve::vllm {

struct Output { // of a request that is under way; times on the engine's clock
    uint64_t first_ns = 0, last_ns = 0; // when its first and its last tokens so far came
    uint32_t tokens = 0;
    bool came_whole = false; // several at its end, as with best_of: when it had the first one is not known
};

struct Request {
    uint64_t arrival_ns = 0;
    uint32_t prompt_tokens = 0, max_tokens = 0;
    std::vector<Output> outputs;
};

// Adds series to a registry. All have the labels model_name and engine.
class SeriesFactory {
  public:
    SeriesFactory(prometheus::Registry&, const std::string& model_name);

    prometheus::Gauge& gauge(const char* name, const char* help) const;
    prometheus::Counter& counter(const char* name, const char* help, const metrics::Labels& besides = {}) const;
    prometheus::Histogram& histogram(const char* name, const char* help, std::span<const double> buckets) const;

  private:
    prometheus::Registry& registry_;
    const metrics::Labels labels_;
};

// Queue, KV cache and batches, step by step.
class StepSeries {
  public:
    explicit StepSeries(const SeriesFactory&);
    void on_step(const engine::StepReport&);

  private:
    prometheus::Gauge &running_, &waiting_, &usage_;
    prometheus::Counter &queries_, &hits_, &preemptions_;
    prometheus::Histogram& tokens_;
};

// Drafts and how many of their tokens were accepted.
class SpeculationSeries {
  public:
    explicit SpeculationSeries(const SeriesFactory&);
    void on_step(const engine::StepReport&);

  private:
    prometheus::Counter &drafts_, &draft_tokens_, &accepted_;
    // The report's last position counts those after it, too.
    std::array<prometheus::Counter*, engine::DraftReport::kPositions - 1> accepted_at_{};
};

// Where the time of a request goes.
class LatencySeries {
  public:
    explicit LatencySeries(const SeriesFactory&);
    void on_tokens(const Request&, const Output& before, uint64_t now_ns);
    void on_end(const Request&, const Output&, const engine::RequestOutput& last);

  private:
    prometheus::Histogram &first_token_, &between_tokens_, &per_token_; // seconds, as all of them
    prometheus::Histogram &total_, &queue_, &inference_, &prefill_, &decode_;
};

// How large requests are, their parameters and how they end.
class RequestSeries {
  public:
    // max_model_len: the longest that a prompt or an output can be.
    RequestSeries(const SeriesFactory&, uint32_t max_model_len);
    void on_prefill(const Request&); // its prompt is computed
    void on_tokens(size_t count);
    void on_output_end(const Request&, const Output&, engine::FinishReason);
    void on_end(const Request&); // of all its outputs

  private:
    prometheus::Counter &prompt_total_, &generation_total_;
    prometheus::Histogram &prompt_tokens_, &generation_tokens_, &n_, &max_tokens_;
    std::array<prometheus::Counter*, engine::kFinishReasons> success_{};
};

}  // namespace patchbay::serve::vllm
