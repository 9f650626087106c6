// patchbay/sdk/highest.hpp - for samplers: the highest of a row of logits, and the n highest, without sorting the rest.
// NaN is lower than every number.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace patchbay {

struct Candidate {
    int32_t token;
    float logit;
};

// Of equal logits the lower token comes first.
inline bool likelier(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// −infinity where there is none.
inline float highest(std::span<const float> x) {
    constexpr size_t kLanes = 32; // independent, so that a compiler has vectors to fill
    float maxima[kLanes];
    std::fill_n(maxima, kLanes, -INFINITY);
    size_t i = 0;
    for (; i + kLanes <= x.size(); i += kLanes)
        for (size_t j = 0; j < kLanes; ++j) maxima[j] = x[i + j] > maxima[j] ? x[i + j] : maxima[j];
    for (; i < x.size(); ++i) maxima[0] = x[i] > maxima[0] ? x[i] : maxima[0];
    return *std::max_element(maxima, maxima + kLanes);
}

// Keeps the n likeliest of what it is offered, in ascending order of tokens.
class Highest {
  public:
    Highest(size_t n, std::vector<Candidate>& kept) : n_(n), kept_(kept) { kept_.clear(); }

    void offer(int32_t token, float logit) {
        if (!(logit > least_)) return; // an equal one came earlier
        kept_.push_back({token, logit});
        if (kept_.size() >= 2 * n_ + kSpare) shrink();
    }
    // Those kept, in no order.
    void finish() {
        if (kept_.size() > n_) shrink();
    }

  private:
    static constexpr size_t kSpare = 64; // for small n: so many more are gathered before the lowest go

    void shrink() {
        if (n_ == 0) return kept_.clear();
        std::nth_element(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(n_ - 1), kept_.end(), likelier);
        kept_.resize(n_);
        least_ = kept_.back().logit;
    }

    size_t n_;
    std::vector<Candidate>& kept_;
    float least_ = -INFINITY;
};

}  // namespace patchbay
