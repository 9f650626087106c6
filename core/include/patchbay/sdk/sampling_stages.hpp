// patchbay/sdk/sampling_stages.hpp - for samplers: stages that take away from what is left of a row's tokens, each a
// function that knows nothing of the others, so that a sampler has only to put them in an order. Candidates have
// logits over the temperature; only their differences matter, and at least one of them is always left.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "patchbay/sdk/highest.hpp"

namespace patchbay {

using Candidates = std::vector<Candidate>;

inline float max_logit_of(const Candidates& c) {
    float max_logit = -INFINITY;
    for (const Candidate& x : c) max_logit = std::max(max_logit, x.logit);
    return max_logit;
}

inline double log_weight(const Candidates& c) { // of all of them together
    const double max_logit = max_logit_of(c);
    double sum = 0;
    for (const Candidate& x : c) sum += std::exp(x.logit - max_logit);
    return max_logit + std::log(sum);
}

// Keeps what is at most n standard deviations of the logits below the highest; temperature does not matter to it.
// Source: Tang et al., "Top-nσ: Not all logits are you need", 2024.
inline void keep_top_n_sigma(Candidates& c, float n) {
    const double max_logit = max_logit_of(c);
    double sum = 0, squares = 0;
    for (const Candidate& x : c) {
        const double distance = x.logit - max_logit;
        sum += distance;
        squares += distance * distance;
    }
    const double count = static_cast<double>(c.size()), mean = sum / count;
    const double least = max_logit - n * std::sqrt(std::max(0.0, squares / count - mean * mean));
    std::erase_if(c, [&](const Candidate& x) { return x.logit < least; });
}

// Keeps the fewest that make up p, taken by how near their surprisal is to the entropy of all: neither what is too
// unlikely nor, where much is possible, what is too likely. Source: Meister et al., "Locally Typical Sampling", 2023.
inline void keep_typical(Candidates& c, float p) {
    struct Scored {
        double strange, probability;
        Candidate candidate;
    };
    const double norm = log_weight(c);
    double entropy = 0;
    for (const Candidate& x : c) entropy += std::exp(x.logit - norm) * (norm - x.logit);
    std::vector<Scored> heap;
    heap.reserve(c.size());
    for (const Candidate& x : c)
        heap.push_back({std::abs(norm - x.logit - entropy), std::exp(x.logit - norm), x});
    const auto later = [](const Scored& a, const Scored& b) { // so that only those kept are sorted
        return a.strange != b.strange ? a.strange > b.strange : a.candidate.token > b.candidate.token;
    };
    std::make_heap(heap.begin(), heap.end(), later);
    c.clear();
    for (double sum = 0; !heap.empty() && (c.empty() || sum < p); heap.pop_back()) {
        std::pop_heap(heap.begin(), heap.end(), later);
        sum += heap.back().probability;
        c.push_back(heap.back().candidate);
    }
}

// Keeps what is at least p times as likely as the likeliest.
inline void keep_min_p(Candidates& c, float p) {
    const float least = max_logit_of(c) + std::log(p);
    std::erase_if(c, [&](const Candidate& x) { return x.logit < least; });
}

// Of those with a probability of at least `threshold` only the least likely stays (XTC, exclude top choices, by
// p-e-w). Whether it comes to that is drawn by the caller.
inline void exclude_top_choices(Candidates& c, float threshold) {
    const double least = log_weight(c) + std::log(static_cast<double>(threshold));
    const auto is_top = [&](const Candidate& x) { return x.logit >= least; };
    const Candidate* last = nullptr;
    for (const Candidate& x : c)
        if (is_top(x) && (!last || likelier(*last, x))) last = &x;
    if (!last) return;
    const int32_t stays = last->token;
    std::erase_if(c, [&](const Candidate& x) { return is_top(x) && x.token != stays; });
}

// Keeps what has a surprisal of at most mu bits, and the likeliest in any case.
// Source: Basu et al., "Mirostat: A Neural Text Decoding Algorithm that Directly Controls Perplexity", 2021; v2.
inline void keep_unsurprising(Candidates& c, double mu) {
    const double least = std::min<double>(max_logit_of(c), log_weight(c) - mu * 0.6931471805599453);
    std::erase_if(c, [&](const Candidate& x) { return x.logit < least; });
}

// Its mu after outputs that came with such surprisals: a pure function of them, so that nothing has to be remembered.
inline double mirostat_mu(double tau, double eta, std::span<const float> surprisal) {
    double mu = 2 * tau;
    for (const float s : surprisal) mu -= eta * (s - tau);
    return mu;
}

}  // namespace patchbay
