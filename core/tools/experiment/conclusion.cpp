#include "experiment/conclusion.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "base/words.hpp"
#include "experiment/counting_table.hpp"
#include "experiment/disturbance.hpp"

namespace patchbay::experiment {
namespace {

bool is_measured(const RunSummary& r) { return r.counts() && !r.rate; }

const RunSummary* valid_run(const std::vector<RunSummary>& runs, size_t variant, uint32_t repeat) {
    for (const RunSummary& r : runs)
        if (r.variant == variant && r.repeat == repeat && is_measured(r)) return &r;
    return nullptr;
}

uint32_t repeats_in(const std::vector<RunSummary>& runs) {
    uint32_t count = 0;
    for (const RunSummary& r : runs) count = std::max(count, r.repeat + 1);
    return count;
}

// Those with any valid run.
std::set<size_t> present_in(const std::vector<RunSummary>& runs) {
    std::set<size_t> variants;
    for (const RunSummary& r : runs)
        if (is_measured(r)) variants.insert(r.variant);
    return variants;
}

bool is_whole(const std::vector<RunSummary>& runs, const std::set<size_t>& variants, uint32_t repeat) {
    return std::ranges::all_of(variants, [&](size_t v) { return valid_run(runs, v, repeat) != nullptr; });
}

// The requests of repeats that every variant with valid runs has one of, or, where there is none, that both have.
void compare_outputs(const std::vector<RunSummary>& runs, size_t variant, size_t baseline, bool comparable,
                     Comparison& c) {
    const std::set<size_t> present = present_in(runs);
    std::vector<std::pair<const RunSummary*, const RunSummary*>> whole, both;
    for (uint32_t r = 0; r < repeats_in(runs); ++r) {
        const RunSummary *a = valid_run(runs, variant, r), *b = valid_run(runs, baseline, r);
        if (!a || !b) continue;
        both.emplace_back(a, b);
        if (is_whole(runs, present, r)) whole.emplace_back(a, b);
    }
    c.repeats = static_cast<uint32_t>(whole.empty() ? both.size() : whole.size());
    if (!comparable) return;
    uint32_t same = 0;
    if (whole.empty()) whole = std::move(both);
    for (const auto& [of_variant, of_baseline] : whole)
        for (size_t k = 0; k < std::min(of_variant->outputs.size(), of_baseline->outputs.size()); ++k) {
            const uint64_t a = of_variant->outputs[k], b = of_baseline->outputs[k];
            if (a == 0 || b == 0) continue; // not complete
            c.pairs += 1;
            same += a == b;
        }
    if (c.pairs > 0) c.same_output = static_cast<double>(same) / c.pairs;
}

std::vector<std::string> notices_of(const std::vector<RunSummary>& runs,
                                    const std::vector<Contestant>& contestants) {
    std::vector<std::string> notices;
    for (const RunSummary& r : runs) {
        if (!has_own_faults(r)) continue;
        const std::string which = "run " + std::to_string(r.position + 1) + " (" + contestants[r.variant].name +
                                  ", repeat " + std::to_string(r.repeat + 1) + ")";
        notices.push_back(r.superseded ? "the second attempt at " + which + " is invalid, so the first one counts: " +
                                             joined(r.faults)
                                       : which + " is invalid: " + joined(r.faults));
    }
    const std::set<size_t> present = present_in(runs);
    bool any_whole = present.size() < 2;
    for (uint32_t r = 0; r < repeats_in(runs) && !any_whole; ++r) any_whole = is_whole(runs, present, r);
    if (!any_whole)
        notices.push_back("no repeat has a valid run of every variant: a value is of the repeats that its variant has, "
                          "a difference of those that the two have in common, so that they do not add up");
    for (const Contestant& c : contestants)
        if (!c.undeclared.empty())
            notices.push_back("variant '" + c.name +
                              "' differs from the baseline in more than it declares: " + joined(c.undeclared));
    for (const Contestant& c : contestants)
        if (c.same_configuration)
            notices.push_back("variant '" + c.name +
                              "' has the same configuration as the baseline: differences between the two are noise");
    std::vector<std::string> others;
    for (const Contestant& c : contestants)
        if (!c.same_requests) others.push_back(c.name);
    if (!others.empty())
        notices.push_back("other requests than the baseline's were sent to " + joined(others) +
                          ": differences come from the requests too, and outputs are not compared");
    return notices;
}

// Verdicts that were asked for, of metrics that no run has.
void note_missing(const Measured& m, const std::vector<VariantResult>& results, const Question& q,
                  std::vector<std::string>& notices) {
    std::vector<std::string> missing, of_plugins;
    bool plugins = false;
    for (const size_t metric : q.primary) {
        const auto has_value = [&](const VariantResult& r) { return !std::isnan(r.metrics[metric]); };
        if (std::ranges::any_of(results, has_value)) continue;
        missing.push_back("'" + m.list[metric].name + "'");
        plugins |= is_plugin_metric(m.list[metric].name);
    }
    if (missing.empty()) return;
    for (const MetricInfo& info : m.list)
        if (is_plugin_metric(info.name) && !metric_named(info.name, q.list)) of_plugins.push_back(info.name);
    std::string notice = "no run has a value of the primary metric" + std::string(missing.size() > 1 ? "s " : " ") +
                         joined(missing);
    if (plugins) notice += of_plugins.empty() ? "; no plugin has any" : "; plugins have " + joined(of_plugins);
    notices.push_back(std::move(notice));
}

// Repeats that hold no information of their own, and variants that changed nothing.
std::vector<std::string> notices_about(const Measured& m, const std::vector<VariantResult>& results,
                                       const std::vector<Contestant>& contestants, const Question& q) {
    std::vector<std::string> notices;
    const auto is_there = [](double value) { return !std::isnan(value); };
    const auto has_any = [&](const VariantResult& r) { return std::ranges::any_of(r.metrics, is_there); };
    if (std::ranges::any_of(results, has_any)) note_missing(m, results, q, notices);
    const auto again = repeats_seen_before(m);
    if (!again.empty()) {
        std::vector<std::string> numbers;
        for (const uint32_t r : again) numbers.push_back(std::to_string(r + 1));
        notices.push_back((again.size() > 1 ? "repeats " : "repeat ") + joined(numbers) +
                          " gave the times of an earlier repeat to the nanosecond, in every variant: what is the same "
                          "counts once. Draw lengths or arrivals, or set simulation.step_jitter");
    }
    for (size_t v = 0; v < results.size(); ++v)
        if (results[v].comparison.unchanged && !contestants[v].same_configuration)
            notices.push_back("variant '" + contestants[v].name +
                              "' had exactly the same times as the baseline in every run: what it declares had no "
                              "effect");
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

namespace {

// A run has no number of what never happened in it: a plugin's counter that nothing was added to, or the time of a call
// that was never made. It is 0 there if the variant has it in another run; otherwise the mean would be that of the runs
// in which it happened. A time is filled in only where the run has steps.
void fill_zeros(const std::vector<RunSummary>& runs, Measured& m) {
    const size_t passes = *metric_named("batch_sequences"); // which a run with steps has
    const auto is_there = [](double value) { return !std::isnan(value); };
    for (size_t i = 0; i < m.list.size(); ++i) {
        const std::string& name = m.list[i].name;
        const bool is_time = name.starts_with("time_"), is_counter = is_plugin_metric(name) && name.ends_with("_total");
        if (!is_time && !is_counter) continue;
        std::vector<bool> happened;
        for (const auto& variant : m.values) happened.push_back(std::ranges::any_of(variant[i], is_there));
        for (const RunSummary& run : runs) {
            if (!is_measured(run) || !happened[run.variant]) continue;
            double& value = m.values[run.variant][i][run.repeat];
            const bool has_passes = is_there(m.values[run.variant][passes][run.repeat]);
            if (!is_there(value) && (is_counter || has_passes)) value = 0;
        }
    }
}

}  // namespace

Measured measured(const std::vector<RunSummary>& runs, size_t variants, const MetricList& list) {
    const uint32_t repeats = repeats_in(runs);
    Measured m;
    m.list = list;
    std::set<std::string> of_plugins;
    for (const RunSummary& run : runs)
        for (const NamedNumber& n : run.of_plugins) of_plugins.insert(n.name);
    for (const std::string& name : of_plugins)
        if (!metric_named(name, list)) m.list.push_back(plugin_metric(name));
    m.values.assign(variants, std::vector(m.list.size(), std::vector<double>(repeats, kNoValue)));
    m.timings.assign(variants, std::vector<uint64_t>(repeats, 0));
    for (const RunSummary& run : runs) {
        if (!is_measured(run)) continue;
        for (size_t i = 0; i < run.metrics.size(); ++i) m.values[run.variant][i][run.repeat] = run.metrics[i];
        for (const NamedNumber& n : run.of_plugins)
            m.values[run.variant][*metric_named(n.name, m.list)][run.repeat] = n.value;
        m.timings[run.variant][run.repeat] = run.timing;
    }
    fill_zeros(runs, m);
    return m;
}

namespace {

ClassResults results_of_class(const std::vector<RunSummary>& runs, Measured m, const Question& q, size_t by,
                              const ClassName& name) {
    ClassResults out;
    out.name = name.second;
    out.requests.assign(m.values.size(), 0);
    for (auto& variant : m.values)
        for (auto& metric : variant) std::ranges::fill(metric, kNoValue);
    for (const RunSummary& run : runs) {
        if (!is_measured(run)) continue;
        const auto at = run.classes[by].find(name);
        if (at == run.classes[by].end()) continue;
        out.requests[run.variant] += at->second.requests;
        for (size_t i = 0; i < at->second.metrics.size(); ++i)
            m.values[run.variant][i][run.repeat] = at->second.metrics[i];
    }
    Question exploratory = q;
    exploratory.primary.clear();
    out.results = judge(m, exploratory);
    return out;
}

// Every number of each class, with intervals; the first classes where there are very many.
std::vector<ClassResults> results_by_class(const std::vector<RunSummary>& runs, const Measured& m, const Question& q,
                                           const std::vector<ByClass>& by, std::vector<std::string>& notices) {
    constexpr size_t kMaxClasses = 32;
    std::vector<ClassResults> out;
    for (size_t i = 0; i < by.size(); ++i) {
        std::set<ClassName> names;
        for (const RunSummary& run : runs)
            if (is_measured(run))
                for (const auto& [name, numbers] : run.classes[i])
                    if (numbers.requests > 0) names.insert(name);
        const std::string word = word_of(by[i].kind);
        if (names.size() > kMaxClasses)
            notices.push_back("requests are of " + std::to_string(names.size()) + " classes by " + word +
                              ", of which " + std::to_string(kMaxClasses) + " are shown");
        size_t shown = 0;
        for (const ClassName& name : names) {
            if (shown++ == kMaxClasses) break;
            out.push_back(results_of_class(runs, m, q, i, name));
            out.back().by = word;
        }
    }
    return out;
}

void set_capacities(Measured& m, const Capacities& capacities) {
    const size_t metric = *metric_named("capacity");
    auto& bounds = m.bounds[metric];
    for (size_t v = 0; v < m.values.size(); ++v) {
        std::vector<double>& values = m.values[v][metric];
        std::vector<bool>& is_bound = bounds.emplace_back(values.size());
        if (v >= capacities.found.size()) continue;
        for (size_t r = 0; r < std::min(capacities.found[v].size(), values.size()); ++r) {
            values[r] = capacities.found[v][r];
            // 0 stands for a capacity somewhere below the lowest rate.
            is_bound[r] = capacities.beyond[v][r] || capacities.found[v][r] == 0;
        }
    }
}

}  // namespace

Conclusion conclude(const std::vector<RunSummary>& runs, const std::vector<Contestant>& contestants, const Question& q,
                    const std::vector<ByClass>& by, const Capacities& capacities) {
    Conclusion c;
    Measured m = measured(runs, contestants.size(), q.list);
    set_capacities(m, capacities);
    c.list = m.list;
    c.primary = q.primary;
    c.results = judge(m, q);
    for (size_t v = 0; v < contestants.size(); ++v)
        if (v != q.baseline)
            compare_outputs(runs, v, q.baseline, contestants[v].same_requests, c.results[v].comparison);
    c.notices = notices_of(runs, contestants);
    c.classes = results_by_class(runs, m, q, by, c.notices);
    for (std::string& notice : notices_about(m, c.results, contestants, q)) c.notices.push_back(std::move(notice));

    const bool undeclared =
        std::any_of(contestants.begin(), contestants.end(), [](const Contestant& k) { return !k.undeclared.empty(); });
    const bool all_valid =
        std::ranges::all_of(runs, [](const RunSummary& r) { return r.superseded ? !has_own_faults(r) : r.valid(); });
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
        const double same = claim.leader ? c.results[*claim.leader].comparison.same_output : 1; // NaN: not compared
        if (same < 1)
            c.sentence += "; its outputs differ from those of " + names[q.baseline] + " in " + shown(100 * (1 - same)) +
                          " % of the requests, so judge their quality too";
    }
    return c;
}

}  // namespace patchbay::experiment
