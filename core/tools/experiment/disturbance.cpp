#include "experiment/disturbance.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/words.hpp"
#include "experiment/conclusion.hpp"

namespace patchbay::experiment {
namespace {

constexpr std::string_view kDisturbed = "disturbed: ";

std::string percent(double share) { return shown(100 * share) + " %"; }

std::string short_percent(double share) { // 5 %, not 5.00 %
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
    return text;
}

const char* was(size_t count) { return count == 1 ? " was " : " were "; }

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
    const std::string why = " (over " + short_percent(d.limit) + " of the CPU time taken by others)";
    const std::string up_to = ", up to " + short_percent(worst);
    std::string out;
    if (repeated > 0) out = number_of(repeated, "run") + was(repeated) + "disturbed" + why + " and repeated; ";
    if (repeated > 0 && disturbed == 0)
        out += repeated > 1 ? "none of the repeats was disturbed" : "the repeat was not disturbed";
    else if (repeated == 1 && disturbed == 1) out += "the repeat was disturbed too" + up_to;
    else if (repeated > 0 && disturbed == repeated)
        out += (repeated == 2 ? "both" : "all " + std::to_string(repeated)) + " repeats were disturbed too" + up_to;
    else if (disturbed < repeated)
        out += std::to_string(disturbed) + " of the " + std::to_string(repeated) + " repeats" + was(disturbed) +
               "disturbed too" + up_to;
    else
        out += std::to_string(disturbed) + " of the " + std::to_string(counted) + " runs that count" +
               was(disturbed) + "disturbed" + (repeated > 0 ? "" : why) + up_to;
    return out + ". A quieter machine gives narrower intervals";
}

}  // namespace patchbay::experiment
