#include <algorithm>
#include <cmath>

#include "base/words.hpp"
#include "experiment/conclusion.hpp"

namespace patchbay::experiment {
namespace {

std::string with_unit(double value, const std::string& unit) {
    return shown(value) + (unit == "%" ? " %" : " " + unit);
}

struct Claiming {
    const Measured& m;
    const std::vector<VariantResult>& results;
    const std::vector<std::string>& names;
    const Question& q;
    size_t headline = q.primary.front();
    const MetricInfo& info = m.list[headline];

    Verdict verdict(size_t v, size_t metric) const { return results[v].comparison.metrics[metric].verdict; }
    bool is_bound(size_t v) const { return results[v].bounds.contains(headline); }
    std::string value(size_t v) const {
        return (is_bound(v) ? "at least " : "") + with_unit(results[v].metrics[headline], info.unit);
    }
    const std::string& base() const { return names[q.baseline]; }

    // Intervals and tests hold for all alternatives at once, so that they may be shown of the one that looks best.
    double level() const { return kAlpha / static_cast<double>(names.size() - 1); }

    // Of shares in percentage points, as the table has it.
    std::string shift(double value) const { return with_unit(value, info.unit == "%" ? "pp" : info.unit); }
    std::string difference(size_t v, size_t other) const {
        const Difference d = difference_between(m, q, v, other, headline, level());
        const std::string interval = std::isnan(d.low)
                                         ? ", the same in every repeat)"
                                         : ", 95 % interval " + shown(d.low) + " to " + shown(d.high) + ")";
        return "(difference " + shift(d.value) + interval;
    }
    // A verdict may hold at a less strict level than the interval, by what else is shown. It then stands for itself.
    bool has_proof(size_t v) const {
        const Difference& d = results[v].comparison.metrics[headline];
        return d.verdict == Verdict::kBetter && d.p <= level();
    }
    std::string difference_from_base(size_t v) const {
        if (has_proof(v) || verdict(v, headline) != Verdict::kBetter) return difference(v, q.baseline);
        const Difference& d = results[v].comparison.metrics[headline];
        return "(difference " + shift(d.value) + ", p " + shown(d.corrected) + " corrected by Holm)";
    }

    // Why the first of the others that is not shown to be worse than `best` is not; empty: all are. At the level of the
    // interval that the sentence prints: one that contains 0 is no proof.
    std::string unbeaten(size_t best, const std::vector<size_t>& others) const {
        for (const size_t other : others) {
            const Difference d = difference_between(m, q, best, other, headline);
            const std::string named = names[other] + " (" + value(other) + ")";
            if (d.verdict == Verdict::kTooFewRepeats) return named + " has too few independent repeats beside it";
            if (!is_gain(d, info.better) || !(d.p <= level())) return named + " cannot be distinguished from it";
        }
        return "";
    }

    // "better in TTFT p50 and TTFT p99, worse in TPOT p50"; empty: nothing beside the headline is shown.
    std::string beside(size_t v) const {
        std::string out;
        for (const auto& [verdict_wanted, word] :
             {std::pair{Verdict::kBetter, "better"}, {Verdict::kWorse, "worse"}, {Verdict::kDifferent, "different"}}) {
            std::vector<std::string> labels;
            for (const size_t metric : q.primary)
                if (metric != headline && verdict(v, metric) == verdict_wanted)
                    labels.push_back(m.list[metric].label);
            if (labels.empty()) continue;
            out += (out.empty() ? "" : ", ") + std::string(word) + " in " + listed(labels, " and ");
        }
        return out;
    }
};

// "no more than a bound is known of the capacity of a (at least 50.0 req/s)"; empty: all are measured.
std::string bounds_of(const Claiming& c) {
    std::vector<std::string> texts;
    for (size_t v = 0; v < c.names.size(); ++v)
        if (c.is_bound(v)) texts.push_back(c.names[v] + " (" + c.value(v) + ")");
    if (texts.empty()) return "";
    return "no more than a bound is known of the " + c.info.label + " of " + listed(texts, " and ");
}

// Of variants that no winner stands out of: what is shown of each, of the first few.
std::string what_else(const Claiming& c) {
    constexpr size_t kNamed = 3;
    std::string out;
    size_t more = 0, named = 0;
    for (size_t v = 0; v < c.names.size(); ++v) {
        if (v == c.q.baseline) continue;
        const std::string shown_of = c.beside(v);
        if (shown_of.empty()) continue;
        if (named++ < kNamed) out += "; " + c.names[v] + " is " + shown_of;
        else more += 1;
    }
    if (more == 0) return out;
    return out + "; " + std::to_string(more) + (more > 1 ? " more variants differ" : " more variant differs") +
           " in one or another";
}

Claim without_leader(std::string sentence, const std::string& rest = "", bool claims = false) {
    return {.winner = {}, .sentence = sentence + rest, .leader = {}, .claims = claims || !rest.empty()};
}

}  // namespace

Claim claim_of(const Measured& m, const std::vector<VariantResult>& results, const std::vector<std::string>& names,
               const Question& q) {
    const Claiming c{m, results, names, q};
    const double sign = c.info.better == Better::kHigher ? 1 : -1;
    std::vector<size_t> others; // those with numbers, best first
    for (size_t v = 0; v < names.size(); ++v) {
        if (v == q.baseline) continue;
        if (c.verdict(v, c.headline) == Verdict::kTooFewRepeats)
            return without_leader("no winner is named: fewer than " + std::to_string(kRepeatsForVerdict) +
                                  " independent repeats" +
                                  (q.first_stage ? ", or of the first ones fewer than 2," : "") + " are valid");
        if (!std::isnan(results[v].metrics[c.headline])) others.push_back(v);
    }
    std::stable_sort(others.begin(), others.end(), [&](size_t a, size_t b) {
        return sign * results[a].metrics[c.headline] > sign * results[b].metrics[c.headline];
    });
    if (c.info.better == Better::kNeither)
        return without_leader("no winner is named: " + c.info.label + " is neither good nor bad", what_else(c));
    if (others.size() == 1 && c.verdict(others[0], c.headline) == Verdict::kWorse)
        return without_leader(names[others[0]] + " has a worse " + c.info.label + " than " + c.base() + ": " +
                        c.value(others[0]) + " against " + c.value(q.baseline) + " " +
                        c.difference(others[0], q.baseline),
                              what_else(c), true);
    // The mean of one whose repeats vary much may be the best and shown to be nothing.
    auto leading = std::ranges::find_if(others, [&](size_t v) { return c.has_proof(v); });
    if (leading == others.end())
        leading = std::ranges::find_if(others, [&](size_t v) { return c.verdict(v, c.headline) == Verdict::kBetter; });
    if (const std::string bounds = bounds_of(c); leading == others.end() && !bounds.empty())
        return without_leader("no winner is named: " + bounds, what_else(c));
    if (leading == others.end())
        return without_leader("no variant is shown to have a better " + c.info.label + " than " + c.base(),
                              what_else(c));

    const size_t best = *leading;
    const std::string proof = ": " + c.value(best) + " against " + c.value(q.baseline) + " of " + c.base() + " " +
                              c.difference_from_base(best);
    others.erase(leading);
    Claim claim{.winner = {}, .sentence = {}, .leader = best, .claims = true};
    const std::string unbeaten = c.unbeaten(best, others);
    if (unbeaten.empty()) {
        claim.winner = names[best];
        claim.sentence = names[best] + " has the best " + c.info.label + proof;
        if (!others.empty())
            claim.sentence +=
                " and " + c.value(others[0]) + " of " + names[others[0]] + " " + c.difference(best, others[0]);
    } else {
        claim.sentence = names[best] + " has a better " + c.info.label + " than " + c.base() + proof +
                         "; " + unbeaten + ", so no winner is named";
    }
    if (const std::string beside = c.beside(best); !beside.empty())
        claim.sentence += "; compared with " + c.base() + " it is also " + beside;
    return claim;
}

}  // namespace patchbay::experiment
