#include "experiment/against_itself.hpp"

#include <algorithm>
#include <cmath>

namespace patchbay::experiment {
namespace {

std::string percent(double share) { return shown(100 * share) + " %"; }

std::string of_experiments(const std::string& what, uint64_t false_ones, uint64_t of) {
    const Interval i = share_interval(false_ones, of, kAlpha);
    return what + ": " + std::to_string(false_ones) + " of " + std::to_string(of) + " experiments, " +
           percent(static_cast<double>(false_ones) / static_cast<double>(of)) + " (95 % interval " + percent(i.low) +
           " to " + percent(i.high) + "; 5 % are meant to)\n";
}

std::string of_numbers(const std::string& what, uint64_t false_ones, uint64_t of) { // which depend on one another
    return what + ": " + std::to_string(false_ones) + " of " + std::to_string(of) + ", " +
           percent(static_cast<double>(false_ones) / static_cast<double>(of)) + "\n";
}

}  // namespace

config::Node against_itself(const ExperimentSpec& spec, uint32_t n) {
    const VariantSpec& base = spec.variants[spec.baseline];
    config::Node copy = base.patch;
    if (!base.at.empty()) copy.set("at", base.at_given);
    config::Node variants = config::Node::map();
    for (size_t v = 0; v < std::max<size_t>(2, spec.variants.size()); ++v)
        variants.set("copy " + std::to_string(v + 1), copy);
    config::Node document = spec.document;
    std::erase_if(document.entries, [](const config::Entry& e) { return e.key == "factors" || e.key == "baseline"; });
    document.set("variants", std::move(variants));
    document.set("seed", config::Node::scalar(std::to_string(spec.seed + n)));
    return document;
}

void FalseRates::add(const Conclusion& c) {
    bool any = false, judged = true, unchanged = true;
    for (const VariantResult& r : c.results) {
        if (r.comparison.metrics.empty()) continue; // the baseline
        unchanged &= r.comparison.unchanged;
        judged &= r.comparison.independent >= kRepeatsForVerdict;
    }
    unchanged_ += unchanged;
    if (!judged) {
        unjudged_ += 1;
        return;
    }
    for (const VariantResult& r : c.results)
        for (const Difference& d : r.comparison.metrics) {
            if (!std::isnan(d.low)) intervals_.add(d.low > 0 || d.high < 0);
            if (d.verdict == Verdict::kExploratory || d.verdict == Verdict::kNone) continue;
            if (d.verdict == Verdict::kAtLeast || d.verdict == Verdict::kAtMost) continue;
            if (d.verdict == Verdict::kTooFewRepeats) continue; // of a metric that only few repeats have
            const bool is_false = d.verdict != Verdict::kNoDifference;
            verdicts_.add(is_false);
            any |= is_false;
        }
    experiments_.add(any);
    sentences_.add(c.claims);
}

std::string FalseRates::text() const {
    std::string out;
    if (experiments_.of > 0) {
        out += of_experiments("a false verdict somewhere", experiments_.false_ones, experiments_.of);
        out += of_experiments("a false conclusion", sentences_.false_ones, sentences_.of);
        out += of_numbers("false verdicts among all", verdicts_.false_ones, verdicts_.of);
        out += of_numbers("95 % intervals that leave out 0", intervals_.false_ones, intervals_.of);
    }
    if (unchanged_ > 0)
        out += "copies were the same to the nanosecond in " + std::to_string(unchanged_) +
               " experiments, which says nothing: a simulation needs simulation.run_jitter for this\n";
    if (unjudged_ > 0)
        out += std::to_string(unjudged_) + " experiments had fewer than " + std::to_string(kRepeatsForVerdict) +
               " independent repeats and are not counted\n";
    return out;
}

}  // namespace patchbay::experiment
