#include "serve/vllm_metrics.hpp"

#include <unordered_map>
#include <utility>

#include "serve/vllm_series.hpp"

namespace patchbay::serve {
namespace {

prometheus::Gauge& cache_config(prometheus::Registry& registry, const engine::EngineFacts& facts) { // no model_name
    return prometheus::BuildGauge()
        .Name("vllm:cache_config_info")
        .Help("Information of the LLMEngine CacheConfig")
        .Register(registry)
        .Add({{"engine", "0"},
              {"block_size", std::to_string(facts.kv.block_size)},
              {"num_gpu_blocks", std::to_string(facts.kv.num_blocks)},
              {"cache_dtype", facts.kv.dtype},
              {"enable_prefix_caching", facts.kv.prefix_caching == "on" ? "True" : "False"}});
}

struct InProgress {
    vllm::Request request;
    size_t ended = 0; // of its outputs
    bool prefilled = false;
};

}  // namespace

struct VllmMetrics::State {
    State(prometheus::Registry& registry, const vllm::SeriesFactory& factory, const engine::EngineFacts& facts)
        : cache_config_info(cache_config(registry, facts)), steps(factory), speculation(factory), latencies(factory),
          totals(factory, facts.max_model_len) {
        cache_config_info.Set(1);
    }
    ~State() { cache_config_info.Set(0); } // the next engine may have another

    prometheus::Gauge& cache_config_info;
    vllm::StepSeries steps;
    vllm::SpeculationSeries speculation;
    vllm::LatencySeries latencies;
    vllm::RequestSeries totals;
    std::unordered_map<engine::RequestId, InProgress> requests;
};

VllmMetrics::VllmMetrics(metrics::Metrics& all, const std::string& model_name, const engine::EngineFacts& facts)
    : state_(std::make_unique<State>(*all.registry(), vllm::SeriesFactory(*all.registry(), model_name), facts)) {}
VllmMetrics::~VllmMetrics() = default;

void VllmMetrics::on_request(engine::RequestId id, const engine::Request& r) {
    state_->requests[id].request = {.arrival_ns = r.arrival_ns,
                                    .prompt_tokens = static_cast<uint32_t>(r.prompt.size()),
                                    .max_tokens = r.sampling.max_tokens,
                                    .outputs = std::vector<vllm::Output>(r.sampling.n)};
}

void VllmMetrics::on_output(const engine::RequestOutput& out) {
    State& s = *state_;
    const auto at = s.requests.find(out.id);
    if (at == s.requests.end()) return;
    vllm::Request& r = at->second.request;
    vllm::Output& o = r.outputs.at(out.index);
    if ((!out.tokens.empty() || !out.embedding.empty()) && !std::exchange(at->second.prefilled, true))
        s.totals.on_prefill(r);
    if (!out.tokens.empty()) {
        s.totals.on_tokens(out.tokens.size());
        s.latencies.on_tokens(r, o, out.time_ns);
        if (o.tokens == 0) {
            o.first_ns = out.time_ns;
            o.came_whole = out.tokens.size() > 1 && out.finish != engine::FinishReason::kNone;
        }
        o.last_ns = out.time_ns;
        o.tokens += static_cast<uint32_t>(out.tokens.size());
    }
    if (out.finish == engine::FinishReason::kNone) return;
    if (engine::is_complete(out.finish)) s.latencies.on_end(r, o, out);
    s.totals.on_output_end(r, o, out.finish);
    if (++at->second.ended < r.outputs.size()) return;
    s.totals.on_end(r);
    s.requests.erase(at);
}

void VllmMetrics::on_step(const engine::StepReport& r) {
    state_->steps.on_step(r);
    state_->speculation.on_step(r);
}

}  // namespace patchbay::serve
