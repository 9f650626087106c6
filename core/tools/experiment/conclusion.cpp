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

using Counted = std::vector<const RunRecord*>; // of one variant, by repeat

Counted valid_runs(const std::vector<RunRecord>& runs, size_t variant) {
    Counted out;
    for (const RunRecord& r : runs)
        if (r.variant == variant && r.valid()) out.push_back(&r);
    std::sort(out.begin(), out.end(), [](const RunRecord* a, const RunRecord* b) { return a->repeat < b->repeat; });
    return out;
}

// The valid runs of the repeats that every variant has a valid run of, so that all are judged by the same requests.
// Where there is no such repeat, all valid runs.
std::vector<Counted> counted_runs(const std::vector<RunRecord>& runs, size_t variants) {
    std::vector<Counted> all;
    std::map<uint32_t, size_t> have; // repeat → variants
    for (size_t v = 0; v < variants; ++v) {
        all.push_back(valid_runs(runs, v));
        for (const RunRecord* r : all.back()) have[r->repeat] += 1;
    }
    const auto is_whole = [&](uint32_t repeat) { return have[repeat] == variants; };
    if (std::none_of(have.begin(), have.end(), [&](const auto& h) { return h.second == variants; })) return all;
    for (Counted& c : all) std::erase_if(c, [&](const RunRecord* r) { return !is_whole(r->repeat); });
    return all;
}

Comparison compare_paired(const Counted& variant, const Counted& other, const Slo& slo, uint64_t seed) {
    Counted a, b; // the repeats that both have
    for (const RunRecord* r : variant)
        for (const RunRecord* o : other)
            if (o->repeat == r->repeat) {
                a.push_back(r);
                b.push_back(o);
            }
    return compare(a, b, slo, seed);
}

std::vector<std::string> notices_of(const std::vector<RunRecord>& runs, const std::vector<Contestant>& contestants) {
    std::vector<std::string> notices;
    for (const RunRecord& r : runs)
        if (!r.faults.empty())
            notices.push_back("run " + std::to_string(r.position + 1) + " (" + contestants[r.variant].name +
                              ", repeat " + std::to_string(r.repeat + 1) + ") is invalid: " + joined(r.faults));
    for (const Contestant& c : contestants)
        if (!c.undeclared.empty())
            notices.push_back("variant '" + c.name +
                              "' differs from the baseline in more than it declares: " + joined(c.undeclared));
    return notices;
}

std::string with_unit(double value, const std::string& unit) {
    return shown(value) + (unit == "%" ? " %" : " " + unit);
}

std::string difference_of(const Difference& d) {
    return "(difference " + shown(d.value) + ", 95 % interval " + shown(d.low) + " to " + shown(d.high) + ")";
}

// Names a winner only if it is shown to be better than the baseline and than the one that comes next.
void judge(Conclusion& c, const std::vector<Counted>& counted, const std::vector<Contestant>& contestants,
           size_t baseline, const Slo& slo, uint64_t seed) {
    const size_t m = headline_metric(slo);
    const MetricInfo& info = metric_infos()[m];
    const double sign = info.better == Better::kHigher ? 1 : -1;
    const auto goodness = [&](size_t v) { return sign * c.results[v].metrics[m]; };
    std::vector<size_t> others; // those with numbers, best first
    bool few = false;
    for (size_t v = 0; v < contestants.size(); ++v) {
        if (v == baseline) continue;
        few |= c.results[v].comparison.metrics[m].verdict == Verdict::kTooFewRepeats;
        if (!std::isnan(goodness(v))) others.push_back(v);
    }
    if (few) {
        c.sentence = "no winner is named: fewer than " + std::to_string(kRepeatsForVerdict) + " valid repeats";
        return;
    }
    std::stable_sort(others.begin(), others.end(), [&](size_t a, size_t b) { return goodness(a) > goodness(b); });
    const std::string base = contestants[baseline].name;
    if (others.empty() || c.results[others[0]].comparison.metrics[m].verdict != Verdict::kBetter) {
        c.sentence = "no variant is shown to have a better " + info.label + " than " + base;
        return;
    }
    const auto value_of = [&](size_t v) { return with_unit(c.results[v].metrics[m], info.unit); };
    const std::string best = contestants[others[0]].name;
    const Comparison& found = c.results[others[0]].comparison;
    const std::string proof = ": " + value_of(others[0]) + " against " + value_of(baseline) + " of " + base + " " +
                              difference_of(found.metrics[m]);
    c.winner = best;
    if (others.size() > 1) {
        const std::string next = contestants[others[1]].name;
        const Difference d = compare_paired(counted[others[0]], counted[others[1]], slo, seed).metrics[m];
        if (d.verdict == Verdict::kBetter) {
            c.sentence = best + " has the best " + info.label + proof + " and " + value_of(others[1]) + " of " + next +
                         " " + difference_of(d);
        } else {
            c.winner.clear();
            c.sentence = best + " has a better " + info.label + " than " + base + proof + "; no winner is named, as " +
                         next + " with " + value_of(others[1]) + " is not shown to be worse";
        }
    } else {
        c.sentence = best + " has the best " + info.label + proof;
    }
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
    const auto counted = counted_runs(runs, contestants.size());
    for (size_t v = 0; v < contestants.size(); ++v) {
        c.results.push_back({summarise(counted[v], slo), {}});
        if (v != baseline) c.results[v].comparison = compare_paired(counted[v], counted[baseline], slo, seed);
    }
    c.notices = notices_of(runs, contestants);
    const bool undeclared =
        std::any_of(contestants.begin(), contestants.end(), [](const Contestant& k) { return !k.undeclared.empty(); });
    const bool all_valid = std::all_of(runs.begin(), runs.end(), [](const RunRecord& r) { return r.valid(); });
    if (contestants.size() < 2) c.sentence = "one variant: nothing to compare it with";
    else if (undeclared) c.sentence = "no winner is named: the variants differ in more than the declared factors";
    else if (!all_valid) c.sentence = "no winner is named: not all runs are valid";
    else judge(c, counted, contestants, baseline, slo, seed);
    return c;
}

}  // namespace patchbay::experiment
