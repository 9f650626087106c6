#include "experiment/conclusion.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace patchbay::experiment {
namespace {

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
    return out;
}

std::vector<const RunRecord*> valid_runs(const std::vector<RunRecord>& runs, size_t variant) {
    std::vector<const RunRecord*> out;
    for (const RunRecord& r : runs)
        if (r.variant == variant && r.valid()) out.push_back(&r);
    std::sort(out.begin(), out.end(), [](const RunRecord* a, const RunRecord* b) { return a->repeat < b->repeat; });
    return out;
}

VariantResult result_of(const std::vector<RunRecord>& runs, size_t variant, size_t baseline, const Slo& slo,
                        uint64_t seed) {
    VariantResult out;
    const auto ours = valid_runs(runs, variant);
    out.metrics = summarise(ours, slo);
    if (variant == baseline) return out;
    std::map<uint32_t, const RunRecord*> theirs;
    for (const RunRecord* r : valid_runs(runs, baseline)) theirs[r->repeat] = r;
    std::vector<const RunRecord*> a, b; // the repeats that both have
    for (const RunRecord* r : ours)
        if (const auto at = theirs.find(r->repeat); at != theirs.end()) {
            a.push_back(r);
            b.push_back(at->second);
        }
    out.comparison = compare(a, b, slo, seed);
    return out;
}

std::vector<std::string> notices_of(const std::vector<RunRecord>& runs, const std::vector<Contestant>& contestants) {
    std::vector<std::string> notices;
    bool interrupted = false;
    for (const RunRecord& r : runs) {
        interrupted |= r.end == RunEnd::kInterrupted;
        if (!r.faults.empty())
            notices.push_back("run " + std::to_string(r.position + 1) + " (" + contestants[r.variant].name +
                              ", repeat " + std::to_string(r.repeat + 1) + ") is invalid: " + joined(r.faults));
    }
    if (interrupted) notices.push_back("the experiment was interrupted: results are partial");
    for (const Contestant& c : contestants)
        if (!c.undeclared.empty())
            notices.push_back("variant '" + c.name +
                              "' differs from the baseline in more than it declares: " + joined(c.undeclared));
    return notices;
}

std::string with_unit(double value, const std::string& unit) {
    return shown(value) + (unit == "%" ? " %" : " " + unit);
}

void judge(Conclusion& c, const std::vector<Contestant>& contestants, size_t baseline, const Slo& slo) {
    const size_t m = headline_metric(slo);
    const MetricInfo& info = metric_infos()[m];
    const double sign = info.better == Better::kHigher ? 1 : -1;
    size_t best = baseline;
    bool few = false;
    for (size_t v = 0; v < contestants.size(); ++v) {
        if (v == baseline) continue;
        const Verdict verdict = c.results[v].comparison.metrics[m].verdict;
        few |= verdict == Verdict::kTooFewRepeats;
        if (verdict == Verdict::kBetter && sign * c.results[v].metrics[m] > sign * c.results[best].metrics[m]) best = v;
    }
    const std::string base = contestants[baseline].name;
    if (few) {
        c.sentence = "no winner is named: fewer than " + std::to_string(kRepeatsForVerdict) + " valid repeats";
        return;
    }
    c.winner = best == baseline ? "" : contestants[best].name;
    if (best == baseline) {
        c.sentence = "no variant is shown to have a better " + info.label + " than " + base;
        return;
    }
    const Comparison& found = c.results[best].comparison;
    const Difference& d = found.metrics[m];
    c.sentence = c.winner + " has the best " + info.label + ": " + with_unit(c.results[best].metrics[m], info.unit) +
                 " against " + with_unit(c.results[baseline].metrics[m], info.unit) + " of " + base + " (difference " +
                 shown(d.value) + ", 95 % interval " + shown(d.low) + " to " + shown(d.high) + ")";
    if (found.same_output < 1)
        c.sentence += "; its outputs differ from those of " + base + " in " + shown(100 * (1 - found.same_output)) +
                      " % of the requests, so judge their quality too";
}

}  // namespace

std::string shown(double value) {
    if (std::isnan(value)) return "–";
    const double size = std::abs(value);
    char text[64];
    const int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.01 || size == 0 ? 3 : 5;
    std::snprintf(text, sizeof text, "%.*f", size == 0 ? 0 : digits, value);
    std::string out = text;
    const size_t end = std::min(out.find('.'), out.size()), first = out[0] == '-' ? 1 : 0;
    for (size_t at = end; at > first + 3;) out.insert(at -= 3, ",");
    return out;
}

size_t headline_metric(const Slo& slo) {
    const auto& infos = metric_infos();
    const std::string name = slo.any() ? "goodput_share" : "e2e_mean";
    return static_cast<size_t>(
        std::find_if(infos.begin(), infos.end(), [&](const MetricInfo& i) { return i.name == name; }) - infos.begin());
}

Conclusion conclude(const std::vector<RunRecord>& runs, const std::vector<Contestant>& contestants, size_t baseline,
                    const Slo& slo, uint64_t seed) {
    Conclusion c;
    for (size_t v = 0; v < contestants.size(); ++v) c.results.push_back(result_of(runs, v, baseline, slo, seed));
    c.notices = notices_of(runs, contestants);
    const bool undeclared =
        std::any_of(contestants.begin(), contestants.end(), [](const Contestant& k) { return !k.undeclared.empty(); });
    const bool all_valid = std::all_of(runs.begin(), runs.end(), [](const RunRecord& r) { return r.valid(); });
    if (contestants.size() < 2) c.sentence = "one variant: nothing to compare it with";
    else if (undeclared) c.sentence = "no winner is named: the variants differ in more than the declared factors";
    else if (!all_valid) c.sentence = "no winner is named: not all runs are valid";
    else judge(c, contestants, baseline, slo);
    return c;
}

}  // namespace patchbay::experiment
