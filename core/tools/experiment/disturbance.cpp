#include "experiment/disturbance.hpp"

#include <algorithm>
#include <string_view>

#include "experiment/conclusion.hpp"

namespace patchbay::experiment {
namespace {

constexpr std::string_view kDisturbed = "disturbed: ";

std::string percent(double share) { return shown(100 * share) + " %"; }

}  // namespace

bool is_disturbed(const Disturbance& d, const RunSummary& run) { return run.others_share > d.limit; }

bool second_counts(const RunSummary& first, const RunSummary& second) {
    if (first.valid() != second.valid()) return second.valid();
    return second.others_share < first.others_share;
}

void supersede(RunSummary& run, const RunSummary& counts) {
    if (run.valid())
        run.faults = {std::string(kDisturbed) + percent(run.others_share) + " of the CPU time went to others; the run "
                      "was repeated, and the attempt with " + percent(counts.others_share) + " counts"};
    run.superseded = true;
}

bool has_own_faults(const RunSummary& run) {
    return !run.faults.empty() && !(run.superseded && run.faults.front().starts_with(kDisturbed));
}

std::string disturbance_notice(const Disturbance& d, const std::vector<RunSummary>& runs) {
    size_t counted = 0, repeated = 0, disturbed = 0;
    double worst = 0;
    for (const RunSummary& r : runs) {
        repeated += r.superseded;
        counted += r.counts();
        if (!r.counts() || !is_disturbed(d, r)) continue;
        disturbed += 1;
        worst = std::max(worst, r.others_share);
    }
    if (repeated + disturbed == 0) return "";
    std::string out = "other processes or the host took more than " + percent(d.limit) + " of the CPU time";
    if (repeated > 0) out += " of " + std::to_string(repeated) + " runs, which were repeated once";
    if (disturbed > 0)
        out += (repeated > 0 ? std::string(", and again of ") : std::string(" of ")) + std::to_string(disturbed) +
               " of the " + std::to_string(counted) + " runs that count (" + percent(worst) + " at most)";
    return out + ": a quieter machine gives narrower intervals";
}

}  // namespace patchbay::experiment
