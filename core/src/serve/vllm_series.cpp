#include "serve/vllm_series.hpp"

namespace patchbay::serve::vllm {
namespace {

// vLLM's own (v1/metrics/loggers.py).
constexpr double kFirstToken[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25, 0.5,   0.75,
                                  1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160., 640.0, 2560.0};
constexpr double kBetweenTokens[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                     0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr double kWholeRequest[] = {0.3,  0.5,  0.8,  1.0,  1.5,  2.0,   2.5,   5.0,   10.0,  15.0,  20.0,
                                    30.0, 40.0, 50.0, 60.0, 120., 240.0, 480.0, 960.0, 1920., 7680.0};
constexpr double kStepTokens[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr double kOutputs[] = {1, 2, 5, 10, 20};

std::vector<double> one_two_five(uint32_t max) {
    std::vector<double> out;
    for (double power = 1;; power *= 10)
        for (const double digit : {1.0, 2.0, 5.0}) {
            if (digit * power > max) return out;
            out.push_back(digit * power);
        }
}

double seconds(uint64_t from_ns, uint64_t to_ns) {
    return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0;
}

}  // namespace

SeriesFactory::SeriesFactory(prometheus::Registry& registry, const std::string& model_name)
    : registry_(registry), labels_{{"model_name", model_name}, {"engine", "0"}} {}

prometheus::Gauge& SeriesFactory::gauge(const char* name, const char* help) const {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(labels_);
}

prometheus::Counter& SeriesFactory::counter(const char* name, const char* help, const metrics::Labels& besides) const {
    metrics::Labels all = labels_;
    all.insert(besides.begin(), besides.end());
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(all);
}

prometheus::Histogram& SeriesFactory::histogram(const char* name, const char* help,
                                                std::span<const double> buckets) const {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(
        labels_, prometheus::Histogram::BucketBoundaries(buckets.begin(), buckets.end()));
}

StepSeries::StepSeries(const SeriesFactory& f)
    : running_(f.gauge("vllm:num_requests_running", "Number of requests in model execution batches.")),
      waiting_(f.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.")),
      usage_(f.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")),
      queries_(f.counter("vllm:prefix_cache_queries_total",
                         "Prefix cache queries, in terms of number of queried tokens.")),
      hits_(f.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.")),
      preemptions_(f.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.")),
      tokens_(f.histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.",
                          kStepTokens)) {}

void StepSeries::on_step(const engine::StepReport& r) {
    running_.Set(r.queues.running_requests);
    waiting_.Set(r.queues.waiting_requests);
    usage_.Set(r.kv.total_pages > 0 ? static_cast<double>(r.kv.used_pages) / r.kv.total_pages : 0);
    queries_.Increment(static_cast<double>(r.kv.prefix_query_tokens));
    hits_.Increment(static_cast<double>(r.kv.prefix_hit_tokens));
    preemptions_.Increment(r.preemption.preemptions);
    if (r.work.scheduled_tokens > 0) tokens_.Observe(r.work.scheduled_tokens);
}

SpeculationSeries::SpeculationSeries(const SeriesFactory& f)
    : drafts_(f.counter("vllm:spec_decode_num_drafts_total", "Number of spec decoding drafts.")),
      draft_tokens_(f.counter("vllm:spec_decode_num_draft_tokens_total", "Number of draft tokens.")),
      accepted_(f.counter("vllm:spec_decode_num_accepted_tokens_total", "Number of accepted tokens.")) {
    for (size_t i = 0; i < accepted_at_.size(); ++i)
        accepted_at_[i] = &f.counter("vllm:spec_decode_num_accepted_tokens_per_pos_total",
                                     "Accepted tokens per draft position.", {{"position", std::to_string(i)}});
}

void SpeculationSeries::on_step(const engine::StepReport& r) {
    drafts_.Increment(r.drafts.verified_sequences);
    draft_tokens_.Increment(r.drafts.drafted_tokens);
    accepted_.Increment(r.drafts.accepted_tokens);
    for (size_t i = 0; i < accepted_at_.size(); ++i) accepted_at_[i]->Increment(r.drafts.accepted_at[i]);
}

LatencySeries::LatencySeries(const SeriesFactory& f)
    : first_token_(f.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.",
                               kFirstToken)),
      between_tokens_(f.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
                                  kBetweenTokens)),
      per_token_(f.histogram("vllm:request_time_per_output_token_seconds",
                             "Histogram of time_per_output_token_seconds per request.", kBetweenTokens)),
      total_(f.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
                         kWholeRequest)),
      queue_(f.histogram("vllm:request_queue_time_seconds",
                         "Histogram of time spent in WAITING phase for request.", kWholeRequest)),
      inference_(f.histogram("vllm:request_inference_time_seconds",
                             "Histogram of time spent in RUNNING phase for request.", kWholeRequest)),
      prefill_(f.histogram("vllm:request_prefill_time_seconds",
                           "Histogram of time spent in PREFILL phase for request.", kWholeRequest)),
      decode_(f.histogram("vllm:request_decode_time_seconds",
                          "Histogram of time spent in DECODE phase for request.", kWholeRequest)) {}

void LatencySeries::on_tokens(const Request& r, const Output& before, uint64_t now_ns) {
    if (before.tokens == 0) first_token_.Observe(seconds(r.arrival_ns, now_ns));
    else between_tokens_.Observe(seconds(before.last_ns, now_ns));
}

void LatencySeries::on_end(const Request& r, const Output& o, const engine::RequestOutput& last) {
    total_.Observe(seconds(r.arrival_ns, last.time_ns));
    if (last.first_scheduled_ns > 0 || o.tokens > 0) { // a virtual clock begins at 0
        queue_.Observe(seconds(r.arrival_ns, last.first_scheduled_ns));
        inference_.Observe(seconds(last.first_scheduled_ns, last.time_ns));
        if (o.tokens > 0 && !o.came_whole) {
            prefill_.Observe(seconds(last.first_scheduled_ns, o.first_ns));
            decode_.Observe(seconds(o.first_ns, o.last_ns));
        }
    }
    if (o.tokens > 1 && !o.came_whole) per_token_.Observe(seconds(o.first_ns, o.last_ns) / (o.tokens - 1));
}

RequestSeries::RequestSeries(const SeriesFactory& f, uint32_t max_model_len)
    : prompt_total_(f.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.")),
      generation_total_(f.counter("vllm:generation_tokens_total", "Number of generation tokens processed.")),
      prompt_tokens_(f.histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.",
                                 one_two_five(max_model_len))),
      generation_tokens_(f.histogram("vllm:request_generation_tokens", "Number of generation tokens processed.",
                                     one_two_five(max_model_len))),
      n_(f.histogram("vllm:request_params_n", "Histogram of the n request parameter.", kOutputs)),
      max_tokens_(f.histogram("vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.",
                              one_two_five(max_model_len))) {
    for (size_t i = 1; i < success_.size(); ++i) // 0: of what goes on
        success_[i] = &f.counter("vllm:request_success_total", "Count of successfully processed requests.",
                                 {{"finished_reason", std::string(name_of(static_cast<engine::FinishReason>(i)))}});
}

void RequestSeries::on_prefill(const Request& r) { prompt_total_.Increment(r.prompt_tokens); }

void RequestSeries::on_tokens(size_t count) { generation_total_.Increment(static_cast<double>(count)); }

void RequestSeries::on_output_end(const Request& r, const Output& o, engine::FinishReason reason) {
    success_[static_cast<size_t>(reason)]->Increment();
    prompt_tokens_.Observe(r.prompt_tokens);
    generation_tokens_.Observe(o.tokens);
    max_tokens_.Observe(r.max_tokens);
}

void RequestSeries::on_end(const Request& r) { n_.Observe(static_cast<double>(r.outputs.size())); }

}  // namespace patchbay::serve::vllm
