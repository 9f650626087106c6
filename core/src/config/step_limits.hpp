// What a step of an engine can ask of a model and of a sampler at most. Each row of logits takes one of the vocabulary,
// and each belongs to another token of the step.
#pragma once
#include <algorithm>
#include <cstdint>

#include "config/engine_config.hpp"

namespace patchbay::config {

// Of tokens that are sampled, and of drafts.
inline uint32_t max_output_rows(const EngineSettings& s) { return s.max_num_seqs * (1 + s.num_speculative_tokens); }

// Of prompts whose log-probabilities are wanted, beside those.
inline uint32_t max_prompt_rows(const EngineSettings& s) { return std::max(64u, max_output_rows(s)); }

inline uint32_t max_rows(const EngineSettings& s) {
    return std::min(s.max_num_batched_tokens, max_output_rows(s) + max_prompt_rows(s));
}

inline constexpr uint32_t kMaxBeamCandidates = 1024; // of a beam: the highest log-probabilities of its row

// The highest log-probabilities of a row that a request can have of a step.
inline uint32_t max_top_logprobs(const EngineSettings& s, uint32_t vocab_size) {
    const uint32_t of_requests = s.max_logprobs < 0 ? vocab_size : static_cast<uint32_t>(s.max_logprobs);
    return std::min(std::max(of_requests, kMaxBeamCandidates), vocab_size);
}

}  // namespace patchbay::config
