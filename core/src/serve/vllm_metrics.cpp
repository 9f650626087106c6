#include "serve/vllm_metrics.hpp"

#include <array>
#include <unordered_map>

namespace patchbay::serve {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

// vLLM's own (v1/metrics/loggers.py).
constexpr double kFirstToken[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25, 0.5,   0.75,
                          1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160., 640.0, 2560.0};
constexpr double kBetweenTokens[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                             0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr double kRequest[] = {0.3,  0.5,  0.8,  1.0,  1.5,  2.0,   2.5,   5.0,   10.0,  15.0,  20.0,
                       30.0, 40.0, 50.0, 60.0, 120., 240.0, 480.0, 960.0, 1920., 7680.0};
constexpr double kIteration[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

template <size_t n>
Buckets made_of(const double (&all)[n]) { return {all, all + n}; }

Buckets one_two_five(uint32_t most) {
    Buckets out;
    for (double power = 1;; power *= 10)
        for (const double digit : {1.0, 2.0, 5.0}) {
            if (digit * power > most) return out;
            out.push_back(digit * power);
        }
}

double seconds(uint64_t from_ns, uint64_t to_ns) {
    return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0;
}

}  // namespace

struct VllmMetrics::Series {
    struct Output { // of a request that is under way
        uint64_t first_ns = 0, last_ns = 0;
        uint32_t tokens = 0;
        bool ended = false;
    };

    struct Request {
        uint64_t arrival_ns = 0;
        uint32_t prompt_tokens = 0, max_tokens = 0, n = 1, ended = 0;
        bool prefilled = false;
        std::vector<Output> outputs;
    };

    Series(metrics::Metrics& all, const std::string& model_name, const engine::EngineFacts& facts)
        : registry(*all.registry()), labels{{"model_name", model_name}, {"engine", "0"}},
          lengths(one_two_five(facts.max_model_len)) {
        metrics::Labels cache = labels;
        cache.insert({{"block_size", std::to_string(facts.block_size)},
                      {"num_gpu_blocks", std::to_string(facts.num_blocks)},
                      {"cache_dtype", facts.kv_dtype},
                      {"enable_prefix_caching", facts.prefix_caching == "on" ? "True" : "False"}});
        cache.erase("model_name"); // vLLM's has no other labels
        gauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", cache).Set(1);
        for (size_t i = 1; i < success.size(); ++i) // 0: of what goes on
            success[i] = &counter("vllm:request_success_total", "Count of successfully processed requests.",
                                  with("finished_reason", std::string(name_of(static_cast<engine::FinishReason>(i)))));
        for (size_t i = 0; i < accepted_at.size(); ++i)
            accepted_at[i] = &counter("vllm:spec_decode_num_accepted_tokens_per_pos_total",
                                      "Accepted tokens per draft position.", with("position", std::to_string(i)));
    }

    metrics::Labels with(const char* name, std::string value) const {
        metrics::Labels out = labels;
        out[name] = std::move(value);
        return out;
    }
    Gauge& gauge(const char* name, const char* help, const metrics::Labels& of) {
        return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(of);
    }
    Counter& counter(const char* name, const char* help, const metrics::Labels& of) {
        return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(of);
    }
    Gauge& gauge(const char* name, const char* help) { return gauge(name, help, labels); }
    Counter& counter(const char* name, const char* help) { return counter(name, help, labels); }
    template <size_t n>
    Histogram& histogram(const char* name, const char* help, const double (&buckets)[n]) {
        return histogram(name, help, made_of(buckets));
    }
    Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
        return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
    }

    prometheus::Registry& registry;
    const metrics::Labels labels;
    const Buckets lengths;
    std::unordered_map<engine::RequestId, Request> requests;

    Gauge& running = gauge("vllm:num_requests_running", "Number of requests in model execution batches.");
    Gauge& waiting = gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.");
    Gauge& usage = gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.");
    Counter& queries = counter("vllm:prefix_cache_queries_total",
                               "Prefix cache queries, in terms of number of queried tokens.");
    Counter& hits = counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.");
    Counter& preemptions = counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.");
    Counter& prompt = counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.");
    Counter& generation = counter("vllm:generation_tokens_total", "Number of generation tokens processed.");
    Counter& drafts = counter("vllm:spec_decode_num_drafts_total", "Number of spec decoding drafts.");
    Counter& draft_tokens = counter("vllm:spec_decode_num_draft_tokens_total", "Number of draft tokens.");
    Counter& accepted = counter("vllm:spec_decode_num_accepted_tokens_total", "Number of accepted tokens.");
    Histogram& ttft = histogram("vllm:time_to_first_token_seconds",
                               "Histogram of time to first token in seconds.", kFirstToken);
    Histogram& itl = histogram("vllm:inter_token_latency_seconds",
                               "Histogram of inter-token latency in seconds.", kBetweenTokens);
    Histogram& tpot = histogram("vllm:request_time_per_output_token_seconds",
                                "Histogram of time_per_output_token_seconds per request.", kBetweenTokens);
    Histogram& e2e = histogram("vllm:e2e_request_latency_seconds",
                               "Histogram of e2e request latency in seconds.", kRequest);
    Histogram& queue = histogram("vllm:request_queue_time_seconds",
                               "Histogram of time spent in WAITING phase for request.", kRequest);
    Histogram& inference = histogram("vllm:request_inference_time_seconds",
                               "Histogram of time spent in RUNNING phase for request.", kRequest);
    Histogram& prefill = histogram("vllm:request_prefill_time_seconds",
                               "Histogram of time spent in PREFILL phase for request.", kRequest);
    Histogram& decode = histogram("vllm:request_decode_time_seconds",
                               "Histogram of time spent in DECODE phase for request.", kRequest);
    Histogram& iteration = histogram("vllm:iteration_tokens_total",
                               "Histogram of number of tokens per engine_step.", kIteration);
    Histogram& prompt_tokens = histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", lengths);
    Histogram& generation_tokens = histogram("vllm:request_generation_tokens",
                               "Number of generation tokens processed.", lengths);
    Histogram& params_n = histogram("vllm:request_params_n",
                               "Histogram of the n request parameter.", Buckets{1, 2, 5, 10, 20});
    Histogram& params_max_tokens = histogram("vllm:request_params_max_tokens",
                               "Histogram of the max_tokens request parameter.", lengths);
    std::array<Counter*, engine::kFinishReasons> success{};
    std::array<Counter*, engine::StepReport::kDraftPositions> accepted_at{};
};

VllmMetrics::VllmMetrics(metrics::Metrics& all, const std::string& model_name, const engine::EngineFacts& facts)
    : series_(std::make_unique<Series>(all, model_name, facts)) {}
VllmMetrics::~VllmMetrics() = default;

void VllmMetrics::on_request(engine::RequestId id, const engine::Request& r) {
    Series::Request& made = series_->requests[id];
    made.arrival_ns = r.arrival_ns;
    made.prompt_tokens = static_cast<uint32_t>(r.prompt.size());
    made.max_tokens = r.sampling.max_tokens;
    made.n = r.sampling.n;
    made.outputs.resize(r.sampling.n);
}

void VllmMetrics::on_output(const engine::RequestOutput& out) {
    Series& s = *series_;
    const auto at = s.requests.find(out.id);
    if (at == s.requests.end()) return;
    Series::Request& r = at->second;
    Series::Output& o = r.outputs.at(out.index);
    s.generation.Increment(static_cast<double>(out.tokens.size()));
    if ((!out.tokens.empty() || !out.embedding.empty()) && !std::exchange(r.prefilled, true))
        s.prompt.Increment(r.prompt_tokens);
    if (!out.tokens.empty()) {
        if (o.tokens == 0) {
            o.first_ns = out.time_ns;
            s.ttft.Observe(seconds(r.arrival_ns, out.time_ns));
        } else s.itl.Observe(seconds(o.last_ns, out.time_ns));
        o.last_ns = out.time_ns;
        o.tokens += static_cast<uint32_t>(out.tokens.size());
    }
    if (out.finish == engine::FinishReason::kNone) return;
    s.success[static_cast<size_t>(out.finish)]->Increment();
    s.e2e.Observe(seconds(r.arrival_ns, out.time_ns));
    if (out.first_scheduled_ns > 0) {
        s.queue.Observe(seconds(r.arrival_ns, out.first_scheduled_ns));
        s.inference.Observe(seconds(out.first_scheduled_ns, out.time_ns));
        if (o.tokens > 0) {
            s.prefill.Observe(seconds(out.first_scheduled_ns, o.first_ns));
            s.decode.Observe(seconds(o.first_ns, o.last_ns));
        }
    }
    if (o.tokens > 1) s.tpot.Observe(seconds(o.first_ns, o.last_ns) / (o.tokens - 1));
    s.prompt_tokens.Observe(r.prompt_tokens);
    s.generation_tokens.Observe(o.tokens);
    s.params_n.Observe(r.n);
    s.params_max_tokens.Observe(r.max_tokens);
    if (++r.ended == r.n) s.requests.erase(at);
}

void VllmMetrics::on_step(const engine::StepReport& r) {
    Series& s = *series_;
    s.running.Set(r.running_requests);
    s.waiting.Set(r.waiting_requests);
    s.usage.Set(r.total_pages > 0 ? static_cast<double>(r.used_pages) / r.total_pages : 0);
    s.queries.Increment(static_cast<double>(r.prefix_query_tokens));
    s.hits.Increment(static_cast<double>(r.prefix_hit_tokens));
    s.preemptions.Increment(r.preemptions);
    s.drafts.Increment(r.drafted_at[0]);
    s.draft_tokens.Increment(r.drafted_tokens);
    s.accepted.Increment(r.accepted_tokens);
    for (size_t i = 0; i < s.accepted_at.size(); ++i) s.accepted_at[i]->Increment(r.accepted_at[i]);
    if (r.scheduled_tokens > 0) s.iteration.Observe(r.scheduled_tokens);
}

}  // namespace patchbay::serve
