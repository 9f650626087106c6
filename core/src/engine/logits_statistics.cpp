// logits_statistics: how sure the model was, of each token's raw logits. Before the sampler, which may write into them.
#include <algorithm>
#include <cmath>

#include "engine/state.hpp"

namespace patchbay::engine {
namespace {

LogitsStatistics statistics_of(std::span<const float> logits) { // NaN counts as −infinity
    double most = -INFINITY;
    for (const float x : logits) most = std::max(most, x > most ? double{x} : most);
    if (!std::isfinite(most)) return {};
    double sum = 0, weighted = 0; // of e^(x − most), and times x − most
    for (const float x : logits) {
        const double below = x - most;
        if (!(below > -700)) continue;
        const double weight = std::exp(below);
        sum += weight;
        weighted += weight * below;
    }
    return {std::log(sum) - weighted / sum, most, 1 / sum};
}

}  // namespace

Result<> Engine::State::check_statistics(const SamplingParams& p) const {
    if (p.logits_statistics && runner::runs_on_device(sampler.current()))
        return fail("logits_statistics with sampler '" + std::string(sampler.current().type().name) +
                    "', which leaves the logits on the device");
    return {};
}

void Engine::State::note_logits() {
    row_statistics.clear();
    const auto note = [&](const Sequence& s, size_t first, size_t count) {
        if (!s.request.sampling.logits_statistics) return;
        row_statistics.resize(sample_rows.size());
        for (size_t row = first; row < first + count; ++row)
            row_statistics[row] = statistics_of(logits.subspan(row * facts.vocab_size, facts.vocab_size));
    };
    for (const Scheduled& item : scheduled) note(*item.sequence, item.first_row, item.rows);
    for (const Branch& b : branches) note(*scheduled[b.item].sequence, b.first_row, b.rows());
}

void Engine::State::add_statistics(Sequence& s, size_t row) {
    if (!s.request.sampling.logits_statistics || row >= row_statistics.size()) return;
    s.sums.logits.entropy += row_statistics[row].entropy;
    s.sums.logits.max_logit += row_statistics[row].max_logit;
    s.sums.logits.first_share += row_statistics[row].first_share;
    s.sums.logits_rows += 1;
}

}  // namespace patchbay::engine
