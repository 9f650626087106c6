// What speculation is worth: the same requests with a proposer and without, in one run, since a machine drifts from one
// run to the next.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "host/registry.hpp"

namespace patchbay::bench {

struct SpecCase {
    std::vector<std::string> prompts; // texts; empty: random tokens
    uint32_t prompt_tokens = 64;      // of those
    uint32_t requests = 4;            // of random tokens
    uint32_t copies = 1;              // of its text that a prompt is made of: the more, the more an output echoes it
    uint32_t batch = 1;               // requests at once
    uint32_t output = 64;             // tokens each
    uint32_t repeats = 3;             // passes over all requests, in turn with and without, after a warm-up; medians
    float temperature = 0;
};

struct SpecSpeed { // of steps that only decode
    double tokens_per_second = 0, step_seconds = 0, tokens_per_step = 0; // the last of one sequence
};

struct SpecResult {
    engine::EngineFacts facts;
    SpecSpeed without, with;
    double propose_share = 0;       // of the time with: proposing
    double draft_length = 0;        // mean of what sequences were allowed
    std::array<uint64_t, engine::DraftReport::kPositions> drafted{}, accepted{}; // by position
    uint64_t verified = 0, right = 0, by_branch = 0; // drafts; accepted; of them, not on the first path
    double computed = 0;            // tokens for each that is made, with
    uint64_t outputs = 0, same = 0; // texts that are token for token those without
    double speed_up() const { return with.tokens_per_second / without.tokens_per_second; }
};

// Prompts of random tokens, different ones in each pass: a proposer that remembers outputs has seen none of them.
std::vector<std::vector<text::TokenId>> random_prompts(const SpecCase&, uint32_t vocab_size, uint32_t pass);

// `config` with a proposer; without it the same but for that.
Result<SpecResult> bench_spec(const config::EngineConfig&, const host::Registry&, const SpecCase&, Clock&,
                              const std::function<void(const std::string&)>& progress);

std::string table_of(const SpecResult&, const config::EngineConfig&, const SpecCase&);
std::string json_of(const SpecResult&, const config::EngineConfig&, const SpecCase&);

}  // namespace patchbay::bench
