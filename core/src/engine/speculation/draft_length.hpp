// How many tokens a sequence may draft a step: the number that promises the most tokens a second, by the acceptance
// and the times of the steps so far. Engine-internal; see docs/speculation.md.
#pragma once
#include <array>
#include <cstdint>

#include "base/line_fit.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

class DraftLength {
  public:
    explicit DraftLength(uint32_t max_length) : max_(max_length), chosen_(max_length) {}

    // For the next step, in which so many sequences are drafted for. Now and then a number is tried that does not look
    // best, since what is never drafted is never measured.
    uint32_t choose(uint32_t sequences);
    uint32_t chosen() const { return chosen_; } // last
    void observe(const StepReport&); // of a step that verified what was chosen before it, and proposed what is chosen

    double acceptance(uint32_t place) const; // once those before it are accepted, as estimated
    double tokens_a_second(uint32_t drafts, uint32_t sequences) const; // 0: nothing is known of times yet

  private:
    double seconds_a_token() const; // by which a token more makes a step longer
    double fixed_seconds() const;   // that a step takes beside its tokens

    uint32_t max_, chosen_;
    uint64_t choices_ = 0;
    std::array<double, DraftReport::kPositions> tried_{}, right_{}; // drafts by place, older ones counting less
    LineFit step_;        // seconds of steps that only decode, without proposing, by tokens computed
    double weight_ = 0;   // of all these steps beside the latest, which has 1
    double propose_ = 0;  // seconds a draft asked for, of each sequence or of all, as it turns out
    double propose_nothing_ = 0; // seconds of a step without drafts: a draft model reads what the target has computed
};

}  // namespace patchbay::engine
