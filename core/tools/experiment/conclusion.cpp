#include "experiment/conclusion.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace patchbay::experiment {
namespace {

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
    return out;
}

const RunRecord* valid_run(const std::vector<RunRecord>& runs, size_t variant, uint32_t repeat) {
    for (const RunRecord& r : runs)
        if (r.variant == variant && r.repeat == repeat && r.valid()) return &r;
    return nullptr;
}

uint32_t repeats_in(const std::vector<RunRecord>& runs) {
    uint32_t count = 0;
    for (const RunRecord& r : runs) count = std::max(count, r.repeat + 1);
    return count;
}

// The requests of repeats that every variant has a valid run of, or, where there is none, that both have.
void compare_outputs(const std::vector<RunRecord>& runs, size_t variants, size_t variant, size_t baseline,
                     Comparison& c) {
    std::vector<std::pair<const RunRecord*, const RunRecord*>> whole, both;
    for (uint32_t r = 0; r < repeats_in(runs); ++r) {
        const RunRecord *a = valid_run(runs, variant, r), *b = valid_run(runs, baseline, r);
        if (!a || !b) continue;
        both.emplace_back(a, b);
        bool everywhere = true;
        for (size_t v = 0; v < variants; ++v) everywhere &= valid_run(runs, v, r) != nullptr;
        if (everywhere) whole.emplace_back(a, b);
    }
    uint32_t same = 0;
    if (whole.empty()) whole = std::move(both);
    for (const auto& [of_variant, of_baseline] : whole)
        for (size_t k = 0; k < of_variant->requests.size(); ++k) {
            const RequestRecord &a = of_variant->requests[k], &b = of_baseline->requests[k];
            if (!a.completed() || !b.completed()) continue;
            c.pairs += 1;
            same += a.output == b.output && a.others == b.others;
        }
    c.repeats = static_cast<uint32_t>(whole.size());
    if (c.pairs > 0) c.same_output = static_cast<double>(same) / c.pairs;
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

// Repeats that hold no information of their own, and variants that changed nothing.
std::vector<std::string> notices_about(const Measured& m, const std::vector<VariantResult>& results,
                                       const std::vector<Contestant>& contestants) {
    std::vector<std::string> notices;
    const auto again = repeats_seen_before(m);
    if (!again.empty()) {
        std::vector<std::string> numbers;
        for (const uint32_t r : again) numbers.push_back(std::to_string(r + 1));
        notices.push_back((again.size() > 1 ? "repeats " : "repeat ") + joined(numbers) +
                          " gave the times of an earlier repeat to the nanosecond, in every variant: what is the same "
                          "counts once. Draw lengths or arrivals, or set simulation.step_jitter");
    }
    for (size_t v = 0; v < results.size(); ++v)
        if (results[v].comparison.unchanged)
            notices.push_back("variant '" + contestants[v].name +
                              "' took the very times of the baseline in every run: what it declares had no effect");
    return notices;
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

Measured measured(const std::vector<RunRecord>& runs, size_t variants, const Slo& slo) {
    const uint32_t repeats = repeats_in(runs);
    const size_t metrics = metric_infos().size();
    Measured m;
    m.values.assign(variants, std::vector(metrics, std::vector<double>(repeats, kNoValue)));
    m.timings.assign(variants, std::vector<uint64_t>(repeats, 0));
    for (const RunRecord& run : runs) {
        if (!run.valid()) continue;
        const auto values = metrics_of(run, slo);
        for (size_t i = 0; i < metrics; ++i) m.values[run.variant][i][run.repeat] = values[i];
        m.timings[run.variant][run.repeat] = timing_of(run);
    }
    return m;
}

Conclusion conclude(const std::vector<RunRecord>& runs, const std::vector<Contestant>& contestants, const Question& q,
                    const Slo& slo) {
    Conclusion c;
    const Measured m = measured(runs, contestants.size(), slo);
    c.primary = q.primary;
    c.results = judge(m, q);
    for (size_t v = 0; v < contestants.size(); ++v)
        if (v != q.baseline) compare_outputs(runs, contestants.size(), v, q.baseline, c.results[v].comparison);
    c.notices = notices_of(runs, contestants);
    for (std::string& notice : notices_about(m, c.results, contestants)) c.notices.push_back(std::move(notice));

    const bool undeclared =
        std::any_of(contestants.begin(), contestants.end(), [](const Contestant& k) { return !k.undeclared.empty(); });
    const bool all_valid = std::all_of(runs.begin(), runs.end(), [](const RunRecord& r) { return r.valid(); });
    std::vector<std::string> names;
    for (const Contestant& k : contestants) names.push_back(k.name);
    if (contestants.size() < 2) c.sentence = "one variant: nothing to compare it with";
    else if (undeclared) c.sentence = "no winner is named: the variants differ in more than the declared factors";
    else if (!all_valid) c.sentence = "no winner is named: not all runs are valid";
    else {
        Claim claim = claim_of(m, c.results, names, q);
        c.winner = std::move(claim.winner);
        c.sentence = std::move(claim.sentence);
        c.claims = claim.claims;
        const double same = claim.leader ? c.results[*claim.leader].comparison.same_output : 1;
        if (same < 1)
            c.sentence += "; its outputs differ from those of " + names[q.baseline] + " in " + shown(100 * (1 - same)) +
                          " % of the requests, so judge their quality too";
    }
    return c;
}

}  // namespace patchbay::experiment
