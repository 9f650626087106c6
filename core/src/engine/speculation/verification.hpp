// Which drafts are accepted where they are not simply compared with what is sampled: by rejection, or by given rates:
// pure functions of numbers and of (seed, position), not of the batch. Engine-internal; see docs/speculation.md.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "patchbay/sdk/philox.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {

using text::TokenId;

// A token with the probability that its weight has in their sum; −1: there is none above 0. NaN counts as 0.
TokenId draw_token(std::span<const float> weights, const PhiloxBlock& bits);

// The token of a position that follows the distribution `p` whatever the draft is: the draft with probability
// min(1, p / q), else one of max(p − q, 0). q: what the draft was drawn from; empty: it follows from the tokens before
// it, and counts as probability 1. −1: p has no token.
TokenId verify_by_rejection(std::span<const float> p, std::span<const float> q, TokenId draft, uint64_t seed,
                            uint64_t position);

// Accepts the draft of place i with the i-th rate, of all drafts of that place: a later one only where those before it
// are accepted, so rates do not grow.
class SyntheticAcceptance {
  public:
    explicit SyntheticAcceptance(std::span<const double> rates);
    // Once those before it are accepted.
    bool accepts(uint32_t place, uint64_t seed, uint64_t position) const;

  private:
    std::vector<double> given_before_; // by place: the rate among those whose predecessor was accepted
};

}  // namespace patchbay::engine
