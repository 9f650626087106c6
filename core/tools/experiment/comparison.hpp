// From the metrics of runs to what they show: a value a variant and metric, how it differs from the baseline, and a
// verdict where the metric is a primary one. What counts as evidence is an independent repeat.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiment/inference.hpp"
#include "experiment/run_metrics.hpp"
#include "experiment/windows.hpp"

namespace patchbay::experiment {

inline constexpr uint32_t kRepeatsForVerdict = 5; // independent ones

struct Measured { // of an experiment; kNoValue where a repeat has no valid run or the run no such number
    std::vector<std::vector<std::vector<double>>> values; // [variant][metric][repeat]
    std::vector<std::vector<uint64_t>> timings; // [variant][repeat], of timing_of; empty: no two runs are the same
    MetricList list = metric_infos();           // the metrics
    std::map<size_t, std::vector<std::vector<bool>>> bounds{}; // by metric: [variant][repeat] whose value is a lower
                                                               // bound of what would have been measured
};

struct Question {
    size_t baseline = 0;
    std::vector<size_t> primary;         // metrics; the first heads the conclusion
    std::vector<WindowPlan> windows;     // of each workload whose repeats share rows of a trace
    std::optional<uint32_t> first_stage; // repeats whose spread decided how many there are; none: that was fixed
    MetricList list = metric_infos();    // what `primary` counts in; plugins' metrics that it does not name may follow
};

// kAtLeast, kAtMost: the difference is a bound, as one of the two values is; it is not judged.
enum class Verdict {
    kBaseline, kBetter, kWorse, kNoDifference, kDifferent, kTooFewRepeats, kExploratory, kAtLeast, kAtMost, kNone
};
std::string word_of(Verdict);

struct Difference {
    double value = kNoValue;                // variant − baseline
    double low = kNoValue, high = kNoValue; // 95 % interval of this one; none where all repeats differ by the same
    Verdict verdict = Verdict::kNone;
    double p = kNoValue;          // of no difference
    double corrected = kNoValue;  // the same by Holm, over primary metrics and variants
    double detectable = kNoValue; // of a primary metric: the smallest that 9 of 10 such experiments would have shown;
                                  // none as with the interval
    bool is_ratio = false;        // estimated as the mean ratio, else as the mean difference
};

struct Comparison {
    std::vector<Difference> metrics;       // one a metric
    uint32_t pairs = 0, repeats = 0;       // requests completed in both; repeats valid in both
    uint32_t independent = 0;              // of these: those that count
    double same_output = kNoValue;         // share of the pairs whose output tokens are equal
    bool unchanged = false;                // every run had exactly the same times as the baseline's
};

struct VariantResult {
    std::vector<double> metrics; // one a metric: means over repeats, of amounts geometric ones
    std::set<size_t> bounds{};   // of these: those that are lower bounds, as values of repeats are
    Comparison comparison{};     // empty metrics: the baseline
};

std::vector<VariantResult> judge(const Measured&, const Question&);

// How many repeats the primary metrics need in all for a relative difference of `effect` to be found, by those measured
// so far; at least these. Of shares in % the difference is that many hundred points.
struct RepeatsNeeded {
    double repeats = 0;
    std::vector<size_t> left_out{}; // primary metrics that say nothing of it: counts, and those without numbers so far
};
RepeatsNeeded repeats_needed(const Measured&, const Question&, double effect);

// How `variant` differs from `other` in a metric, with an interval that is false in alpha of all cases. Not judged, but
// for kTooFewRepeats.
Difference difference_between(const Measured&, const Question&, size_t variant, size_t other, size_t metric,
                              double alpha = kAlpha);
// Equal in every repeat that counts.
bool is_same(const Difference&);
// Whether it is a step to the better, by the sign alone.
bool is_gain(const Difference&, Better);

// Repeats whose runs are, in every variant, the same to the ns as those of an earlier repeat.
std::vector<uint32_t> repeats_seen_before(const Measured&);

}  // namespace patchbay::experiment
