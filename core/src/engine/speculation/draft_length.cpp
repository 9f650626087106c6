#include "engine/speculation/draft_length.hpp"

#include <algorithm>

namespace patchbay::engine {
namespace {

constexpr double kFade = 0.98;     // what a step leaves of the weight of those before it
constexpr uint64_t kTrials = 8;    // choices at the beginning that go through lengths
constexpr uint64_t kTryEvery = 32; // later ones

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

// Of steps of one size nothing follows for others: that they take no longer is the guess that tries them.
double DraftLength::seconds_a_token() const {
    const double x = step_.mean_x(), variance = step_.variance();
    return weight_ * variance > 1e-6 * (variance + x * x) ? std::max(0.0, step_.slope()) : 0;
}
double DraftLength::fixed_seconds() const {
    return std::max(0.0, step_.mean_y() - seconds_a_token() * step_.mean_x());
}

double DraftLength::acceptance(uint32_t place) const {
    // The last one counts those after it, too.
    const size_t at = std::min<size_t>(place, DraftReport::kPositions - 2);
    return (right_[at] + 1) / (tried_[at] + 2);
}

double DraftLength::tokens_a_second(uint32_t drafts, uint32_t sequences) const {
    double tokens = 1, likely = 1;
    for (uint32_t i = 0; i < drafts; ++i) tokens += likely *= acceptance(i);
    const double proposing = drafts > 0 ? propose_ * static_cast<double>(drafts) : propose_nothing_;
    const double time = fixed_seconds() + seconds_a_token() * sequences * (1.0 + drafts) + proposing;
    return time > 0 ? sequences * tokens / time : 0;
}

uint32_t DraftLength::choose(uint32_t sequences) {
    const uint64_t choice = choices_++;
    uint32_t best = max_;
    for (uint32_t k = max_; k-- > 0;)
        if (tokens_a_second(k, sequences) >= tokens_a_second(best, sequences)) best = k;
    const bool begins = choice < kTrials, tries = choice % kTryEvery == 0;
    if (begins || tries) { // from all to one and back
        const uint64_t turn = begins ? choice : choice / kTryEvery;
        best = turn % 2 == 0 ? max_ : 1 + static_cast<uint32_t>(turn / 2 % max_);
    }
    return chosen_ = best;
}

void DraftLength::observe(const StepReport& r) {
    if (r.work.scheduled_tokens == 0) return;
    uint32_t before = r.drafts.drafted_at[0];
    for (size_t i = 0; i < tried_.size() && r.drafts.drafted_at[i] > 0; ++i) {
        const uint32_t reached = std::min(before, r.drafts.drafted_at[i]); // those before it were accepted
        tried_[i] = tried_[i] * kFade + reached;
        right_[i] = right_[i] * kFade + std::min(r.drafts.accepted_at[i], reached);
        before = r.drafts.accepted_at[i];
    }
    if (r.work.prefill_tokens > 0) return; // what prompts cost says nothing of drafts
    const uint64_t took = r.end_ns - r.start_ns, proposing = std::min(r.drafts.propose_ns, took);
    weight_ = weight_ * kFade + 1;
    step_.add(r.work.scheduled_tokens, seconds(took - proposing), 1 / weight_);
    if (proposing == 0) return;
    double& average = chosen_ > 0 ? propose_ : propose_nothing_;
    const double each = seconds(proposing) / std::max(chosen_, 1u);
    average = average > 0 ? average + 0.05 * (each - average) : each;
}

}  // namespace patchbay::engine
