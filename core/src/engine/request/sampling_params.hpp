// How a request wants its tokens chosen, and when its output ends.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/ids.hpp"
#include "grammar/structured_outputs.hpp"

namespace patchbay::engine {

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
    bool skip_special_tokens = true; // in the text; stop strings cannot match them then
    RepetitionDetection repetition_detection{}; // ends an output that repeats a pattern
    uint32_t n = 1; // outputs of one prompt, each with its own draws: of a request with a seed, seed + index
    uint32_t best_of = 0; // outputs that are made, of which the n of the highest cumulative_logprob are given; 0: n
    uint32_t beam_width = 0; // above 0: beam search, whose n best sequences are given (engine/groups/beam_search.hpp)
    float length_penalty = 1;
    EarlyStopping early_stopping = EarlyStopping::kNo;
    std::optional<grammar::StructuredOutputs> structured_outputs{}; // the form that the output takes
};

// Whether what it forbids has to be tokenised, which may take long: Engine::prepare().
inline bool forbids_words(const SamplingParams& p) { return !p.bad_words.empty(); }

inline constexpr uint32_t kMaxOutputs = 128; // n, best_of and beam_width at most
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
     {"top_p", &SamplingParams::top_p, 1e-30f, 1},
     {"min_p", &SamplingParams::min_p, 0, 1},
     {"repetition_penalty", &SamplingParams::repetition_penalty, 1e-3f, 100},
     {"length_penalty", &SamplingParams::length_penalty, -10, 10},
     {"presence_penalty", &SamplingParams::presence_penalty, -10, 10},
     {"frequency_penalty", &SamplingParams::frequency_penalty, -10, 10},
     {"dry_multiplier", &SamplingParams::dry_multiplier, 0, 100},
     {"dry_base", &SamplingParams::dry_base, 1, 100},
     {"top_n_sigma", &SamplingParams::top_n_sigma, 0, 100},
     {"typical_p", &SamplingParams::typical_p, 1e-30f, 1},
     {"xtc_probability", &SamplingParams::xtc_probability, 0, 1},
     {"xtc_threshold", &SamplingParams::xtc_threshold, 0, 1},
     {"mirostat_tau", &SamplingParams::mirostat_tau, 1e-3f, 100},
     {"mirostat_eta", &SamplingParams::mirostat_eta, 0, 10}}};

}  // namespace patchbay::engine
