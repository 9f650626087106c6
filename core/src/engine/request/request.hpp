// What a user asks of the engine and what comes back: plain data.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/output.hpp"
#include "engine/request/sampling_params.hpp"

namespace patchbay::grammar {
class Grammar;
}  // namespace patchbay::grammar

namespace patchbay::engine {

struct RequestTokenRules;

inline constexpr size_t kLongestSalt = 4096; // bytes

enum class PoolingType { kLast, kMean }; // names and meanings as in vLLM

struct Request {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
    // Of sampling.structured_outputs, by compile_grammar() of the same engine. Without it, or of another engine: it is
    // compiled when the request is added.
    std::shared_ptr<grammar::Grammar> grammar;
    // Likewise of the tokens that `sampling` forbids, by prepare().
    std::shared_ptr<const RequestTokenRules> token_rules{};
    // An embedding of the prompt is wanted in place of text, made of the model's final hidden states: that of the last
    // token, or the mean of all. Of `sampling` only skip_reading_prefix_cache counts then.
    std::optional<PoolingType> pooling{};
    int32_t priority = 0;        // lower runs first
    uint32_t tenant = 0;
    uint64_t arrival_ns = 0;     // on the engine's clock; 0: now. In the future: admitted when the time comes
    uint64_t deadline_ns = 0;    // 0: none
    std::string cache_salt;      // its KV is shared with requests of the same one only; at most kLongestSalt bytes
    bool cache_per_tenant = false; // and of the same tenant only
    uint32_t expected_output_tokens = 0; // that it will make, by its sender; 0: not known
    // Its outputs end there, as by an end token that the model samples; max_tokens may be more. For workloads whose
    // requests declare more than they use. 0: they do not.
    uint32_t ends_after = 0;
    std::function<void(const RequestOutput&)> on_output; // on the step thread
};

}  // namespace patchbay::engine
