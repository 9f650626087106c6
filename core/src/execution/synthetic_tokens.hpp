// Tokens where nothing is computed: pure functions of a seed and a position.
#pragma once
#include <cstdint>
#include <span>

namespace patchbay::execution {

// The token of a position: a pure function of seed and position, none of those that would end the request.
int32_t synthetic_token(uint64_t seed, uint64_t position, uint32_t vocab_size, std::span<const int32_t> eos,
                        std::span<const int32_t> stop_ids);

// Its log-probability: likewise, by which best_of chooses among outputs that mean nothing.
float synthetic_logprob(uint64_t seed, uint64_t position);

// The token, or the next one after it that the mask allows; itself, where it allows none.
int32_t next_allowed(int32_t token, const uint32_t* mask, uint32_t vocab_size);

}  // namespace patchbay::execution
