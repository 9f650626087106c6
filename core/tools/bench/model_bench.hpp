// How fast a model runs through the whole engine, and how near that is to what the machine can do: prefill and decode
// of random prompts, each beside the least time that its bytes and multiplications take.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/limits.hpp"
#include "engine/engine.hpp"

namespace patchbay::bench {

struct Case {
    uint32_t batch = 1, prompt = 512, output = 32; // requests at once, tokens each
};

struct Speed {
    double step_seconds = 0;   // the median: of a whole prefill, or of one step of decoding
    double tokens = 0;         // computed in it
    double limit_seconds = 0;  // what the slowest of the limits allows; 0: none was measured
    std::string bound_by;      // which one that is: "memory_read", "memory_read_16MiB"
    double tokens_per_second() const { return tokens / step_seconds; }
    double reached() const { return limit_seconds / step_seconds; } // share of the limit
};

struct CaseResult {
    Case asked;
    Speed prefill;             // of one prompt, in all its steps
    std::vector<uint32_t> prefill_steps; // tokens of each
    Speed decode;              // of the batch, at the middle of its output; tokens 0: no step decoded all of it
    double overhead_seconds;   // a decode step outside of the model's forward pass and the sampler, median; of steps
                               // that come in turn: a host that works while the device does costs nothing
    double replayed = 0, in_flight = 0; // shares of the decode steps: by a graph; with the one before not yet back
};

struct ProcessMemory { // bytes that are resident; 0: the system does not say
    uint64_t now = 0;
    uint64_t peak = 0; // while loading
};

struct ModelBench {
    engine::EngineFacts facts;
    Machine before, after;     // limits as measured around the cases
    std::vector<CaseResult> cases;
    ProcessMemory memory;      // right after loading; its peak is loading's
};

// `config`: what to load; budgets and KV are sized for the cases, but no step takes more of one prompt than its
// max_num_batched_tokens. `progress`: called with what is under way.
Result<ModelBench> bench_model(config::EngineConfig, const host::Registry&, const std::vector<Case>&, uint32_t repeats,
                               const std::function<void(const std::string&)>& progress);

std::string table_of(const ModelBench&);
std::string json_of(const ModelBench&);
std::string json_of(const Machine&);

}  // namespace patchbay::bench
