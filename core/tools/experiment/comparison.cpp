#include "experiment/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace patchbay::experiment {
namespace {

using Variants = std::vector<size_t>;
using Repeats = std::vector<uint32_t>;

uint32_t repeats_of(const Measured& m) {
    for (const auto& variant : m.values)
        if (!variant.empty()) return static_cast<uint32_t>(variant.front().size());
    return 0;
}

// Variants that have a value in any repeat: one that never runs to its end takes none from the others.
Variants present_in(const Measured& m, size_t metric) {
    Variants out;
    for (size_t v = 0; v < m.values.size(); ++v)
        if (std::ranges::any_of(m.values[v][metric], [](double x) { return !std::isnan(x); })) out.push_back(v);
    return out;
}

// The repeats in which each of the variants has a value.
Repeats with_values(const Measured& m, const Variants& variants, size_t metric) {
    Repeats out;
    for (uint32_t r = 0; r < repeats_of(m); ++r)
        if (std::none_of(variants.begin(), variants.end(),
                         [&](size_t v) { return std::isnan(m.values[v][metric][r]); }))
            out.push_back(r);
    return out;
}

// Of repeats that are the same in all of the variants the first.
Repeats distinct(const Measured& m, const Variants& variants, const Repeats& repeats) {
    if (m.timings.empty()) return repeats;
    Repeats out;
    std::set<std::vector<uint64_t>> seen;
    for (const uint32_t r : repeats) {
        std::vector<uint64_t> timing;
        for (const size_t v : variants) timing.push_back(m.timings[v][r]);
        if (seen.insert(timing).second) out.push_back(r);
    }
    return out;
}

// Ratios need numbers above 0, and one scale for all variants.
bool by_ratio(const Measured& m, size_t metric) {
    if (!m.list[metric].is_amount) return false;
    for (const auto& variant : m.values)
        for (const double v : variant[metric])
            if (v <= 0) return false;
    return true;
}

struct MetricColumn { // a metric of all variants
    const Measured& m;
    size_t metric;
    Variants present;
    Repeats whole; // that all of these have, so that they are judged by the same requests
    bool ratio;

    MetricColumn(const Measured& of, size_t which)
        : m(of), metric(which), present(present_in(of, which)), whole(with_values(of, present, which)),
          ratio(by_ratio(of, which)) {}

    // Where no repeat is whole, those of the given variants.
    Repeats counted(const Variants& variants) const {
        const Repeats own = with_values(m, variants, metric);
        return distinct(m, variants, own.empty() || whole.empty() ? own : whole);
    }
    double mean(size_t variant, const Repeats& repeats) const {
        if (repeats.empty()) return kNoValue;
        double sum = 0;
        for (const uint32_t r : repeats) {
            const double v = m.values[variant][metric][r];
            sum += ratio ? std::log(v) : v;
        }
        sum /= static_cast<double>(repeats.size());
        return ratio ? std::exp(sum) : sum;
    }
    Repeats shown(size_t variant) const { return counted(whole.empty() ? Variants{variant} : present); }
    double value(size_t variant) const { return mean(variant, shown(variant)); }
    bool is_bound(size_t variant, const Repeats& repeats) const {
        const auto at = m.bounds.find(metric);
        return at != m.bounds.end() && std::ranges::any_of(repeats, [&](uint32_t r) { return at->second[variant][r]; });
    }
};

struct Paired {
    Estimate estimate;           // of the differences, or of the logarithms of the ratios
    double base = kNoValue;      // the other's value
    bool ratio = false;
    uint32_t repeats = 0, independent = 0;
    bool is_at_least = false, is_at_most = false; // the difference, as a value of ours or theirs is a lower bound

    bool is_bound() const { return is_at_least || is_at_most; }
    // The spread may be that of the first of them alone.
    bool has_too_few_repeats() const { return independent < kRepeatsForVerdict || estimate.freedom < 1; }
    double in_unit(double x) const { return ratio ? base * std::expm1(x) : x; }
    // Of differences that are all the same and not 0 how far they may miss the truth is not known.
    bool has_scale() const { return estimate.freedom >= 1 && (estimate.error > 0 || estimate.mean == 0); }
};

// What differs by rounding alone is the same. rounding: of one difference.
void drop_rounding(std::vector<double>& differences, double rounding) {
    if (differences.empty()) return;
    const auto [min_difference, max_difference] = std::ranges::minmax(differences);
    if (max_difference - min_difference <= rounding) std::ranges::fill(differences, min_difference);
}

// At most so many of these repeats share no rows of a trace.
uint32_t independent_of(const Repeats& repeats, const std::vector<WindowPlan>& windows) {
    auto out = static_cast<uint32_t>(repeats.size());
    for (const WindowPlan& w : windows) {
        std::vector<uint32_t> starts;
        for (const uint32_t r : repeats) starts.push_back(w.starts.at(r));
        out = std::min(out, disjoint_windows(std::move(starts), w.rows));
    }
    return out;
}

Paired paired(const MetricColumn& column, const Question& q, size_t variant, size_t other) {
    constexpr double kRounding = 1e-9; // share of the values by which sums of the same numbers may differ
    Paired out;
    out.ratio = column.ratio;
    const Repeats repeats = column.counted({variant, other});
    out.base = column.mean(other, repeats);
    out.is_at_least = column.is_bound(variant, repeats);
    out.is_at_most = column.is_bound(other, repeats);
    const auto &ours = column.m.values[variant][column.metric], &theirs = column.m.values[other][column.metric];
    std::vector<double> differences;
    double largest = 0;
    for (const uint32_t r : repeats) {
        const double a = ours[r], b = theirs[r], size = std::max(std::abs(a), std::abs(b));
        largest = std::max(largest, size);
        const bool same = std::abs(a - b) <= kRounding * size;
        differences.push_back(same ? 0 : out.ratio ? std::log(a / b) : a - b);
    }
    drop_rounding(differences, kRounding * (out.ratio ? 1 : largest));
    out.repeats = static_cast<uint32_t>(repeats.size());
    out.independent = independent_of(repeats, q.windows);
    if (q.first_stage) {
        const auto is_first = [&](uint32_t r) { return r < *q.first_stage; };
        const auto first = std::count_if(repeats.begin(), repeats.end(), is_first);
        out.estimate = two_stage_estimate(differences, static_cast<uint32_t>(first));
    } else {
        out.estimate = estimate_of(differences, out.independent);
    }
    return out;
}

Difference difference_of(const Paired& p, double alpha) {
    Difference d;
    d.is_ratio = p.ratio;
    if (p.is_at_least && p.is_at_most) return d; // of two bounds nothing is known
    d.value = p.in_unit(p.estimate.mean);
    if (p.is_bound()) {
        d.verdict = p.is_at_least ? Verdict::kAtLeast : Verdict::kAtMost;
        return d;
    }
    if (!std::isnan(d.value) && p.has_too_few_repeats()) d.verdict = Verdict::kTooFewRepeats;
    if (p.has_scale()) {
        const Interval interval = interval_of(p.estimate, alpha);
        d.low = p.in_unit(interval.low);
        d.high = p.in_unit(interval.high);
    }
    d.p = p_value(p.estimate);
    return d;
}

Verdict verdict_of(const Difference& d, Better better) {
    if (std::isnan(d.corrected) || d.corrected > kAlpha || d.value == 0) return Verdict::kNoDifference;
    if (better == Better::kNeither) return Verdict::kDifferent;
    return is_gain(d, better) ? Verdict::kBetter : Verdict::kWorse;
}

// Over all primary metrics of all variants together.
void give_verdicts(const std::vector<std::vector<Paired>>& pairs, const Question& q, const MetricList& list,
                   std::vector<VariantResult>& results) {
    struct Test {
        Difference* difference;
        const Paired* paired;
        size_t metric;
    };
    std::vector<Test> tests;
    for (size_t v = 0; v < results.size(); ++v) {
        if (v == q.baseline) continue;
        for (const size_t metric : q.primary) {
            Difference& d = results[v].comparison.metrics[metric];
            const Paired& p = pairs[v][metric];
            if (p.is_bound()) continue;
            if (std::isnan(d.value)) d.verdict = Verdict::kNone;
            else if (p.has_too_few_repeats()) d.verdict = Verdict::kTooFewRepeats;
            else tests.push_back({&d, &p, metric});
        }
    }
    std::vector<double> p;
    for (const Test& t : tests) p.push_back(t.difference->p);
    const std::vector<double> corrected = holm(p);
    std::map<double, double> errors; // degrees of freedom → smallest mean that is found
    for (size_t i = 0; i < tests.size(); ++i) {
        Difference& d = *tests[i].difference;
        d.corrected = corrected[i];
        d.verdict = verdict_of(d, list[tests[i].metric].better);
        const Estimate& e = tests[i].paired->estimate;
        const auto [at, is_new] = errors.try_emplace(e.freedom, 0);
        if (is_new)
            at->second = detectable_errors(e.freedom, kAlpha / static_cast<double>(tests.size()), kPower) /
                         mean_deviation(e.freedom);
        if (tests[i].paired->has_scale()) d.detectable = std::abs(tests[i].paired->in_unit(at->second * e.error));
    }
}

}  // namespace

std::string word_of(Verdict v) {
    switch (v) {
        case Verdict::kBaseline: return "baseline";
        case Verdict::kBetter: return "better";
        case Verdict::kWorse: return "worse";
        case Verdict::kNoDifference: return "no difference shown";
        case Verdict::kDifferent: return "different";
        case Verdict::kTooFewRepeats: return "too few repeats";
        case Verdict::kExploratory: return "exploratory";
        case Verdict::kAtLeast: return "at least";
        case Verdict::kAtMost: return "at most";
        case Verdict::kNone: break;
    }
    return "no data";
}

bool is_same(const Difference& d) { return d.value == 0 && d.low == 0 && d.high == 0; }

bool is_gain(const Difference& d, Better better) {
    return better == Better::kHigher ? d.value > 0 : better == Better::kLower ? d.value < 0 : false;
}

Difference difference_between(const Measured& m, const Question& q, size_t variant, size_t other, size_t metric,
                              double alpha) {
    return difference_of(paired(MetricColumn(m, metric), q, variant, other), alpha);
}

std::vector<VariantResult> judge(const Measured& m, const Question& q) {
    const size_t metrics = m.list.size();
    std::vector<VariantResult> results(m.values.size());
    std::vector<std::vector<Paired>> pairs(results.size());
    std::vector<MetricColumn> columns;
    for (size_t i = 0; i < metrics; ++i) columns.emplace_back(m, i);
    for (size_t v = 0; v < results.size(); ++v) {
        for (size_t i = 0; i < metrics; ++i) {
            results[v].metrics.push_back(columns[i].value(v));
            if (columns[i].is_bound(v, columns[i].shown(v))) results[v].bounds.insert(i);
        }
        if (v == q.baseline) continue;
        Comparison& c = results[v].comparison;
        for (size_t i = 0; i < metrics; ++i) {
            const Paired& p = pairs[v].emplace_back(paired(columns[i], q, v, q.baseline));
            c.metrics.push_back(difference_of(p, kAlpha));
            if (!p.is_bound() && !std::isnan(c.metrics.back().value)) c.metrics.back().verdict = Verdict::kExploratory;
            c.independent = std::max(c.independent, p.independent);
        }
        c.unchanged = !m.timings.empty() && c.independent > 0;
        for (uint32_t r = 0; c.unchanged && r < repeats_of(m); ++r)
            c.unchanged = m.timings[v][r] == m.timings[q.baseline][r];
    }
    give_verdicts(pairs, q, m.list, results);
    return results;
}

RepeatsNeeded repeats_needed(const Measured& m, const Question& q, double effect) {
    const double tests = static_cast<double>(q.primary.size() * (m.values.size() - 1));
    RepeatsNeeded needed{.repeats = static_cast<double>(repeats_of(m))};
    for (const size_t metric : q.primary) {
        const MetricColumn column(m, metric);
        const bool is_share = m.list[metric].unit == "%", has_size = column.ratio || is_share;
        bool counts = false;
        const double size = column.ratio ? std::log1p(effect) : 100 * effect;
        for (size_t v = 0; has_size && v < m.values.size(); ++v) {
            if (v == q.baseline) continue;
            const Paired p = paired(column, q, v, q.baseline);
            if (p.estimate.freedom < 1) continue;
            counts = true;
            const double deviation = p.estimate.error * std::sqrt(p.estimate.freedom + 1);
            needed.repeats =
                std::max(needed.repeats, values_needed(deviation, p.repeats, size, kAlpha / tests, kPower));
        }
        if (!counts) needed.left_out.push_back(metric);
    }
    return needed;
}

std::vector<uint32_t> repeats_seen_before(const Measured& m) {
    if (m.timings.empty()) return {};
    const auto has_values = [&](size_t variant, uint32_t r) {
        return std::ranges::any_of(m.values[variant], [&](const auto& of) { return !std::isnan(of[r]); });
    };
    Variants present;
    for (size_t v = 0; v < m.values.size(); ++v) {
        bool any = false;
        for (uint32_t r = 0; r < repeats_of(m); ++r) any |= has_values(v, r);
        if (any) present.push_back(v);
    }
    if (present.empty()) return {};
    Repeats all;
    for (uint32_t r = 0; r < repeats_of(m); ++r)
        if (std::ranges::all_of(present, [&](size_t v) { return has_values(v, r); })) all.push_back(r);
    Repeats out;
    const Repeats first = distinct(m, present, all);
    std::set_difference(all.begin(), all.end(), first.begin(), first.end(), std::back_inserter(out));
    return out;
}

}  // namespace patchbay::experiment
