// What comes back of a request.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/request/ids.hpp"

namespace patchbay::engine {

enum class FinishReason { kNone, kStop, kLength, kAbort, kError, kRepetition };
inline constexpr size_t kFinishReasons = 6;
constexpr std::string_view name_of(FinishReason reason) {
    constexpr std::string_view kNames[kFinishReasons] = {"none", "stop", "length", "abort", "error", "repetition"};
    return kNames[static_cast<size_t>(reason)];
}
// The output is whole, whatever ended it.
constexpr bool is_complete(FinishReason r) {
    return r == FinishReason::kStop || r == FinishReason::kLength || r == FinishReason::kRepetition;
}

struct TokenLogprobs {
    float sampled; // of the token itself
    std::vector<std::pair<TokenId, float>> top;
};

struct LogitsStatistics { // means over the output's tokens, of the raw logits that they were sampled from
    double entropy = 0;        // of their softmax, in nats
    double max_logit = 0;
    double first_share = 0;    // of the likeliest token in the softmax
};

// A delta. With best_of and beam search: the whole output, once it is known which ones are the best.
struct RequestOutput {
    RequestId id;
    uint32_t index = 0;           // of n outputs; each ends for itself
    std::vector<TokenId> tokens;  // new ones
    std::vector<TokenLogprobs> logprobs; // one a token, if asked for
    std::string text;             // that became complete with them
    FinishReason finish = FinishReason::kNone;
    std::string stop_reason;      // the stop string or token that matched, or the error's text
    std::optional<TokenId> stop_token; // that ended it, of the request's stop_token_ids
    StatusCode error_code = StatusCode::kInternal; // of an error
    uint64_t time_ns = 0;         // on the engine's clock
    std::vector<TokenLogprobs> prompt_logprobs; // with the first token of output 0, of prompt tokens 1, 2, …
    // At the end only:
    std::optional<double> cumulative_logprob; // sum over the tokens, with logprobs, best_of or beam_width
    std::optional<double> beam_score;         // cumulative_logprob / tokens ^ length_penalty
    std::optional<LogitsStatistics> logits;
    std::vector<float> embedding; // (hidden_size), of a request with `pooling`; not normalised
    uint32_t cached_tokens = 0;   // prompt tokens that came from the prefix cache
    uint32_t preemptions = 0;
    uint64_t first_scheduled_ns = 0;
};

}  // namespace patchbay::engine
