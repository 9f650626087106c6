// Engines for tests: small models, real plugins from the build tree, requests as one line.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "host/registry.hpp"

namespace patchbay::engine::testing {

const host::Registry& registry(); // of the build tree's plugins, and of fails_on_request

// A random Llama: 2 layers, hidden 64 = 4 heads of 16 with 2 KV heads, vocab 300, f32, greedy by default.
config::EngineConfig tiny_model();
std::string repository(const std::string& path); // a path inside the source tree

struct Output {
    std::vector<TokenId> tokens;
    std::vector<TokenLogprobs> logprobs, prompt_logprobs;
    std::string text, stop_reason;
    std::optional<TokenId> stop_token;
    FinishReason finish = FinishReason::kNone;
    uint32_t cached_tokens = 0, preemptions = 0, endings = 0;
    std::optional<double> cumulative_logprob, beam_score;
    std::optional<LogitsStatistics> logits;
    std::vector<float> embedding;
};

// One engine, run to the end of its requests.
class Harness {
  public:
    explicit Harness(const config::EngineConfig&);
    Harness(const config::EngineConfig&, Clock& its_own); // `clock` moves nothing then
    Harness(const config::EngineConfig&, const host::Registry& plugins);
    RequestId add(std::vector<TokenId> prompt, SamplingParams);
    RequestId add(Request);
    const Output& run(RequestId);            // until that one has ended
    const std::map<RequestId, Output>& run_all();
    StepReport step();

    VirtualClock clock;
    std::unique_ptr<Engine> engine;
    std::map<RequestId, Output> outputs;                     // the first of each request
    std::map<std::pair<RequestId, uint32_t>, Output> others; // of requests with n > 1, by index
    std::vector<StepReport> steps;
};

SamplingParams greedy(uint32_t max_tokens);
SamplingParams seeded(uint64_t seed, uint32_t max_tokens);
std::vector<TokenId> random_prompt(uint64_t seed, uint32_t length, uint32_t vocab = 300);

}  // namespace patchbay::engine::testing
