// What a user asks of the engine and what comes back: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/structured_outputs.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {

using RequestId = uint64_t;
using text::TokenId;

struct SamplingParams { // names and meanings as in OpenAI's and vLLM's APIs
    float temperature = 1.0f; // 0: greedy
    int32_t top_k = 0;        // ≤ 0: off
    float top_p = 1.0f;
    float min_p = 0.0f;
    float repetition_penalty = 1.0f;
    float presence_penalty = 0.0f;
    float frequency_penalty = 0.0f;
    // Names and meanings as in llama.cpp; docs/sampling.md.
    float dry_multiplier = 0.0f; // 0: off
    float dry_base = 1.75f;
    uint32_t dry_allowed_length = 2;
    uint32_t dry_range = 0;            // tokens looked back at; 0: all
    std::vector<TokenId> dry_breakers{}; // no repetition reaches across one
    float top_n_sigma = 0.0f;          // 0: off
    float typical_p = 1.0f;            // 1: off
    float xtc_probability = 0.0f;      // 0: off
    float xtc_threshold = 0.1f;
    uint32_t mirostat = 0;             // 0: off; 2: version 2
    float mirostat_tau = 5.0f, mirostat_eta = 0.1f;
    std::map<TokenId, float> logit_bias;
    std::optional<uint64_t> seed;
    int32_t logprobs = -1; // −1: none; n: the sampled token's and the n highest
    uint32_t max_tokens = 16;
    uint32_t min_tokens = 0;
    std::vector<std::string> stop;
    std::vector<TokenId> stop_token_ids;
    bool ignore_eos = false;
    bool include_stop_str_in_output = false;
    uint32_t n = 1; // outputs of one prompt, each with its own draws: of a request with a seed, seed + index
    std::optional<grammar::StructuredOutputs> structured_outputs{}; // the form that the output takes
};

inline constexpr uint32_t kMostOutputs = 128; // n at most
inline constexpr size_t kLongestSalt = 4096;  // bytes

struct SamplingRange { // inclusive
    const char* name;
    float SamplingParams::*field;
    float low, high;
};
inline constexpr std::array<SamplingRange, 14> kSamplingRanges{
    {{"temperature", &SamplingParams::temperature, 0, 100},
     {"top_p", &SamplingParams::top_p, 1e-6f, 1},
     {"min_p", &SamplingParams::min_p, 0, 1},
     {"repetition_penalty", &SamplingParams::repetition_penalty, 1e-3f, 100},
     {"presence_penalty", &SamplingParams::presence_penalty, -10, 10},
     {"frequency_penalty", &SamplingParams::frequency_penalty, -10, 10},
     {"dry_multiplier", &SamplingParams::dry_multiplier, 0, 100},
     {"dry_base", &SamplingParams::dry_base, 1, 100},
     {"top_n_sigma", &SamplingParams::top_n_sigma, 0, 100},
     {"typical_p", &SamplingParams::typical_p, 1e-6f, 1},
     {"xtc_probability", &SamplingParams::xtc_probability, 0, 1},
     {"xtc_threshold", &SamplingParams::xtc_threshold, 0, 1},
     {"mirostat_tau", &SamplingParams::mirostat_tau, 1e-3f, 100},
     {"mirostat_eta", &SamplingParams::mirostat_eta, 0, 10}}};

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };
std::string_view name_of(FinishReason);

struct TokenLogprobs {
    float sampled; // of the token itself
    std::vector<std::pair<TokenId, float>> top;
};

struct RequestOutput { // a delta
    RequestId id;
    uint32_t index = 0;           // of n outputs; each ends for itself
    std::vector<TokenId> tokens;  // new ones
    std::vector<TokenLogprobs> logprobs; // one a token, if asked for
    std::string text;             // that became complete with them
    FinishReason finish = FinishReason::kNone;
    std::string stop_reason;      // the stop string or token that matched, or the error's text
    uint64_t time_ns = 0;         // on the engine's clock
    // At the end only:
    uint32_t cached_tokens = 0;   // prompt tokens that came from the prefix cache
    uint32_t preemptions = 0;
    uint64_t first_scheduled_ns = 0;
};

struct Request {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
    int32_t priority = 0;        // lower runs first
    uint32_t tenant = 0;
    uint64_t arrival_ns = 0;     // on the engine's clock; 0: now. In the future: admitted when the time comes
    uint64_t deadline_ns = 0;    // 0: none
    std::string cache_salt;      // its KV is shared with requests of the same one only; at most kLongestSalt bytes
    uint32_t expected_output_tokens = 0; // that whoever sends it says it will make; 0: nobody says
    std::function<void(const RequestOutput&)> on_output; // on the step thread
};

}  // namespace patchbay::engine
