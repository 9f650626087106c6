// patchbay/sdk/truncation.hpp - for samplers: which tokens remain after a row's temperature, top-k, top-p and min-p, in
// time linear in the vocabulary; and after the rarer stages of sampling_stages.hpp, at their places among those.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "patchbay/sdk/highest.hpp"
#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampling_stages.hpp"

namespace patchbay {

// A row's allowed tokens with finite logits, as distances from the highest logit divided by the temperature. So no
// temperature is too low: towards 0 all others go to −infinity, and the highest stays 0.
class Distances {
  public:
    Distances(std::span<const float> logits, const pb_sample_row& row)
        : logits_(logits), row_(row), temperature_(row.params->temperature > 0 ? row.params->temperature : 1) {
        if (!row.allowed) {
            max_logit_ = highest(logits);
        } else {
            for (size_t t = 0; t < logits.size(); ++t)
                if (allowed(row, t) && logits[t] > max_logit_) max_logit_ = logits[t];
        }
    }

    bool empty() const { return !(max_logit_ > -INFINITY); }

    // f(token, distance), by ascending token
    template <class F>
    void each(F&& f) const {
        for (size_t t = 0; t < logits_.size(); ++t) {
            const float x = logits_[t];
            if (!(x > -INFINITY) || !allowed(row_, t)) continue;
            f(static_cast<int32_t>(t), x == max_logit_ ? 0 : (x - max_logit_) / temperature_);
        }
    }

  private:
    std::span<const float> logits_;
    const pb_sample_row& row_;
    float temperature_, max_logit_ = -INFINITY;
};

// Top-p of the tokens that each(f) calls f with: the fewest most likely ones whose weights reach top_p of all. Weights
// are added up by distance, and only the tokens at the last distance are sorted.
class Nucleus {
  public:
    template <class Each>
    Nucleus(double top_p, const Each& each) {
        each([&](int32_t, float x) { mass_[bucket(x)] += weight(x); });
        double total = 0;
        for (const double m : mass_) total += m;
        left_ = top_p * total;
        while (last_ + 1 < kBuckets && mass_[last_] < left_) left_ -= mass_[last_++];
    }

    template <class Each>
    void keep(const Each& each, std::vector<Candidate>& kept) const {
        std::vector<Candidate> edge;
        each([&](int32_t token, float x) {
            const size_t at = bucket(x);
            if (at < last_) kept.push_back({token, x});
            else if (at == last_) edge.push_back({token, x});
        });
        std::sort(edge.begin(), edge.end(), likelier);
        double sum = 0;
        for (const Candidate& c : edge) {
            if (!(sum < left_) && !kept.empty()) break;
            sum += weight(c.logit);
            kept.push_back(c);
        }
    }

  private:
    static constexpr size_t kBuckets = 512;
    static constexpr float kBucketsPerUnit = 16; // the last one holds all below −32, a weight of nearly nothing

    static double weight(float x) { return std::exp(x); } // the likeliest has 1
    static size_t bucket(float x) { return x > -31.9f ? static_cast<size_t>(-x * kBucketsPerUnit) : kBuckets - 1; }

    std::array<double, kBuckets> mass_{};
    size_t last_ = 0;
    double left_ = 0; // weight that is still needed from the last bucket
};

// Whether some stage may remove tokens.
inline bool truncates(const pb_sampling_params& p) { return p.top_k > 0 || p.top_p < 1 || p.min_p > 0; }

// Calls f(token, distance) for the remaining tokens, in no order. `kept`, `before`: scratch memory.
template <class F>
void each_candidate(const Distances& all, const pb_sampling_params& p, std::vector<Candidate>& kept,
                    std::vector<Candidate>& before, F&& f) {
    const float least = p.min_p > 0 ? std::log(p.min_p) : -INFINITY;
    const auto pass = [&](int32_t token, float x) {
        if (x >= least) f(token, x);
    };
    const bool some = p.top_k > 0, nucleus = p.top_p < 1;
    if (!some && !nucleus) return all.each(pass);
    kept.clear();
    if (some) {
        Highest top(static_cast<size_t>(p.top_k), kept);
        all.each([&](int32_t token, float x) { top.offer(token, x); });
        top.finish();
    }
    if (nucleus) {
        if (some) { // by token, so that sums have one order
            std::sort(kept.begin(), kept.end(), [](auto& a, auto& b) { return a.token < b.token; });
            std::swap(kept, before);
            kept.clear();
            const auto each = [&](auto&& g) {
                for (const Candidate& c : before) g(c.token, c.logit);
            };
            Nucleus(p.top_p, each).keep(each, kept);
        } else {
            const auto each = [&](auto&& g) { all.each(g); };
            Nucleus(p.top_p, each).keep(each, kept);
        }
    }
    for (const Candidate& c : kept) pass(c.token, c.logit);
}

// Stages that most requests do not use. If a request uses one, keep_by_stages() runs all stages.
inline bool has_rare_stages(const pb_sampling_params& p) {
    return p.top_n_sigma > 0 || (p.typical_p > 0 && p.typical_p < 1) || p.xtc_probability > 0 || p.mirostat_tau > 0;
}

// What is left in the end, in the order of docs/sampling.md.
inline void keep_by_stages(const Distances& all, const pb_sample_row& row, Candidates& kept, Candidates& before) {
    const pb_sampling_params& p = *row.params;
    kept.clear();
    all.each([&](int32_t token, float x) {
        if (x > -INFINITY) kept.push_back({token, x}); // a very low temperature gives −infinity
    });
    if (p.top_n_sigma > 0) keep_top_n_sigma(kept, p.top_n_sigma);
    if (p.top_k > 0 && static_cast<size_t>(p.top_k) < kept.size()) {
        std::nth_element(kept.begin(), kept.begin() + p.top_k - 1, kept.end(), likelier);
        kept.resize(static_cast<size_t>(p.top_k));
    }
    if (p.typical_p > 0 && p.typical_p < 1) keep_typical(kept, p.typical_p);
    if (p.top_p < 1) {
        std::swap(kept, before);
        kept.clear();
        const auto each = [&](auto&& f) {
            for (const Candidate& c : before) f(c.token, c.logit);
        };
        Nucleus(p.top_p, each).keep(each, kept);
    }
    if (p.min_p > 0) keep_min_p(kept, p.min_p);
    if (p.xtc_probability > 0 &&
        uniform(draw(row.seed, row.position, Stream::kExclude, 0)[0]) < static_cast<double>(p.xtc_probability))
        exclude_top_choices(kept, p.xtc_threshold);
    if (p.mirostat_tau > 0) {
        const std::span<const float> surprisal(row.surprisal, row.surprisal ? row.output_count : 0);
        keep_unsurprising(kept, mirostat_mu(p.mirostat_tau, p.mirostat_eta, surprisal));
    }
}

}  // namespace patchbay
