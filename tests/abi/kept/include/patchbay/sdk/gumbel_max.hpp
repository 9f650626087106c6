// patchbay/sdk/gumbel_max.hpp - for samplers: the draw of a token by Gumbel-max, with noise that is a pure function of
// (seed, position, token): so a token does not depend on the batch, on chunks or on preemption.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "patchbay/sdk/philox.hpp"

namespace patchbay {

// The argmax of logit + Gumbel noise. Noise is computed only for tokens that can still win: −log(−log(u)) is at most
// −log(1 − u), which the leading bits of 1 − u bound.
class GumbelMax {
  public:
    GumbelMax(uint64_t seed, uint64_t position) : seed_(seed), position_(position) {}

    // Whether a token with this logit can still win.
    bool may_win(float logit) const { return !(logit + 33 * kBit < best_); }

    void offer(int32_t token, float logit, uint32_t bits) {
        if (logit + (std::countl_zero(~bits) + 1) * kBit < best_) return;
        const double x = logit + gumbel_of(bits);
        if (x > best_ || (x == best_ && token < token_)) best_ = x, token_ = token;
    }
    void offer(int32_t token, float logit) {
        if (!may_win(logit)) return;
        const auto t = static_cast<uint32_t>(token);
        offer(token, logit, draw(seed_, position_, Stream::kSample, t / 4)[t % 4]);
    }
    int32_t token() const { return token_; } // −1: none was offered

  private:
    static constexpr double kBit = 0.6931471806; // ln 2, rounded up

    uint64_t seed_, position_;
    double best_ = -INFINITY;
    int32_t token_ = -1;
};

}  // namespace patchbay
