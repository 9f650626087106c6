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

#include "base/result.hpp"
#include "grammar/structured_outputs.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {

using RequestId = uint64_t;
using text::TokenId;

enum class EarlyStopping { // when a beam search ends that has beam_width complete sequences, as Hugging Face's:
    kNo,    // when the best open beam, at its present length, is no better than the worst of them
    kYes,   // at once
    kNever, // when no open beam can become better: at its full length, where length_penalty favours long ones
};

struct RepetitionDetection { // names and meanings as in vLLM
    uint32_t max_pattern_size = 0; // tokens; 0: off
    uint32_t min_pattern_size = 1;
    uint32_t min_count = 3;        // times that the pattern stands at the output's end
};

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
    std::vector<std::string> bad_words; // that the output does not have, at the beginning of a word or as a part of it
    std::optional<std::vector<TokenId>> allowed_token_ids; // none: all
    std::optional<uint64_t> seed;
    // Of the sampled token and so many of the highest; −1: of the whole vocabulary. And of the prompt's tokens.
    std::optional<int32_t> logprobs, prompt_logprobs;
    // Its prompt is computed though it is cached. Always so with prompt_logprobs, which cached tokens do not have.
    bool skip_reading_prefix_cache = false;
    bool logits_statistics = false;         // costs a pass over each row of logits that is sampled
    uint32_t max_tokens = 16;
    uint32_t min_tokens = 0;
    std::vector<std::string> stop;
    std::vector<TokenId> stop_token_ids;
    bool ignore_eos = false;
    bool include_stop_str_in_output = false;
    RepetitionDetection repetition_detection{}; // ends an output that repeats a pattern
    uint32_t n = 1; // outputs of one prompt, each with its own draws: of a request with a seed, seed + index
    uint32_t best_of = 0; // outputs that are made, of which the n of the highest cumulative_logprob are given; 0: n
    uint32_t beam_width = 0; // above 0: beam search, whose n best sequences are given (engine/beam_search.hpp)
    float length_penalty = 1;
    EarlyStopping early_stopping = EarlyStopping::kNo;
    std::optional<grammar::StructuredOutputs> structured_outputs{}; // the form that the output takes
};

inline constexpr uint32_t kMaxOutputs = 128; // n, best_of and beam_width at most
inline constexpr size_t kLongestSalt = 4096;  // bytes
// Sequences that the engine runs for a request.
inline uint32_t sequences_of(const SamplingParams& p) {
    return p.beam_width > 0 ? p.beam_width : p.best_of > p.n ? p.best_of : p.n;
}

struct SamplingRange { // inclusive
    const char* name;
    float SamplingParams::*field;
    float low, high;
};
inline constexpr std::array<SamplingRange, 15> kSamplingRanges{
    {{"temperature", &SamplingParams::temperature, 0, 100},
     {"top_p", &SamplingParams::top_p, 1e-6f, 1},
     {"min_p", &SamplingParams::min_p, 0, 1},
     {"repetition_penalty", &SamplingParams::repetition_penalty, 1e-3f, 100},
     {"length_penalty", &SamplingParams::length_penalty, -10, 10},
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

enum class PoolingType { kLast, kMean }; // names and meanings as in vLLM

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
    std::optional<double> cumulative_logprob; // sum over the tokens, where logprobs, best_of or beam_width ask for it
    std::optional<double> beam_score;         // cumulative_logprob / tokens ^ length_penalty
    std::optional<LogitsStatistics> logits;
    std::vector<float> embedding; // (hidden_size), of a request with `pooling`; not normalised
    uint32_t cached_tokens = 0;   // prompt tokens that came from the prefix cache
    uint32_t preemptions = 0;
    uint64_t first_scheduled_ns = 0;
};

struct Request {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
    // An embedding of the prompt is wanted in place of text, made of the model's final hidden states: that of the last
    // token, or the mean of all. Of `sampling` only skip_reading_prefix_cache counts then.
    std::optional<PoolingType> pooling{};
    int32_t priority = 0;        // lower runs first
    uint32_t tenant = 0;
    uint64_t arrival_ns = 0;     // on the engine's clock; 0: now. In the future: admitted when the time comes
    uint64_t deadline_ns = 0;    // 0: none
    std::string cache_salt;      // its KV is shared with requests of the same one only; at most kLongestSalt bytes
    uint32_t expected_output_tokens = 0; // that it will make, by its sender; 0: not known
    // Its outputs end there, as by an end token that the model samples; max_tokens may be more. For workloads whose
    // requests declare more than they use. 0: they do not.
    uint32_t ends_after = 0;
    std::function<void(const RequestOutput&)> on_output; // on the step thread
};

}  // namespace patchbay::engine
