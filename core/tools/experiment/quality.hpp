// What variants make of a text, for those that change numbers: how well they predict it, and whether they go on as the
// baseline does. The experiment's key `quality`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "experiment/inference.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

struct QualityScores { // of one variant
    std::vector<double> nats;                          // by window: mean −ln p of its tokens but the first
    std::vector<engine::TokenId> likeliest;          // by predicted token
    std::vector<std::vector<engine::TokenId>> outputs; // greedy, of the beginnings of the first windows
    std::string text_sha256{};                         // of the file
};

// The text is cut into windows that know nothing of one another. Fails where the engine computes nothing, has no
// tokenizer, or a window is longer than it takes.
Result<QualityScores> score_quality(engine::Engine&, const QualityCheck&);

struct QualityResult {
    uint64_t predicted = 0;             // tokens
    double perplexity = 0;
    double ratio = 1;                   // to the baseline's perplexity
    Interval interval{1, 1};            // of the ratio, 95 %, over windows
    double same_choice = 1;             // share of predictions whose most likely token is the baseline's
    uint64_t outputs = 0;
    double same_outputs = 1, same_tokens = 1; // shares: outputs that are the baseline's; tokens before the first other
};
// One a variant. The scores are of the same text.
std::vector<QualityResult> compare_quality(const std::vector<QualityScores>&, size_t baseline);

std::string quality_text(const std::vector<QualityResult>&, const std::vector<std::string>& variants, size_t baseline);

template <class A>
void fields(A& a, QualityScores& q) {
    a(q.nats, q.likeliest, q.outputs, q.text_sha256);
}

}  // namespace patchbay::experiment
