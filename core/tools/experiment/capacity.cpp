#include "experiment/capacity.hpp"

#include <cmath>

#include "base/words.hpp"
#include "experiment/conclusion.hpp"

namespace patchbay::experiment {

std::optional<double> RateSearch::next() const {
    if (failed_ || none_) return std::nullopt;
    if (high_ / low_ > 1 + precision_) return std::sqrt(low_ * high_);
    if (!was_kept_) return lowest_;
    if (!was_missed_ && low_ < highest_) return highest_;
    return std::nullopt;
}

void RateSearch::add(double rate, bool kept) {
    if (kept) {
        low_ = rate;
        was_kept_ = true;
        return;
    }
    was_missed_ = true;
    none_ = rate <= lowest_;
    high_ = rate;
}

double RateSearch::found() const {
    if (failed_) return kNoValue;
    return none_ ? 0 : was_kept_ ? low_ : kNoValue;
}

bool keeps(const CapacitySearch& search, const RunSummary& run) {
    constexpr double kRounding = 1e-12; // 99.9 % of 1,000 requests are 999, though 99.9 / 100 is more than 0.999
    return run.objective.value_or(0) >= search.share - kRounding;
}

Result<Capacities> find_capacities(const CapacitySearch& search, const std::vector<std::string>& variants,
                                   uint32_t repeats, uint64_t seed, const RunRound& run_round) {
    std::vector<std::vector<RateSearch>> searches(variants.size(), std::vector(repeats, RateSearch(search)));
    const auto order = run_order(variants.size(), repeats, seed);
    for (;;) {
        std::vector<RunSlot> round;
        for (const RunSlot& slot : order)
            if (const auto rate = searches[slot.variant][slot.repeat].next())
                round.push_back({slot.variant, slot.repeat, rate});
        if (round.empty()) break;
        PB_TRY(const std::vector<RunSummary> runs, run_round(round));
        for (const RunSummary& run : runs) {
            RateSearch& s = searches[run.variant][run.repeat];
            if (run.valid()) s.add(*run.rate, keeps(search, run));
            else s.fail();
        }
        if (runs.size() < round.size()) break;
    }
    Capacities out;
    std::vector<std::string> all_kept, none_kept;
    for (size_t v = 0; v < variants.size(); ++v) {
        uint32_t beyond = 0, none = 0;
        auto& found = out.found.emplace_back();
        auto& is_beyond = out.beyond.emplace_back();
        for (const RateSearch& s : searches[v]) {
            found.push_back(s.next() ? kNoValue : s.found()); // not ended: no answer
            is_beyond.push_back(!s.next() && s.is_beyond());
            beyond += is_beyond.back();
            none += found.back() == 0;
        }
        const auto add = [&](uint32_t n, std::vector<std::string>& to) {
            if (n == 0) return;
            to.push_back(variants[v] + " in " + std::to_string(n) + " of " + std::to_string(repeats) + " repeats");
        };
        add(beyond, all_kept);
        add(none, none_kept);
    }
    if (!all_kept.empty())
        out.notices.push_back("capacity: the objective was kept at the highest rate of the search, " +
                              shown(search.highest) +
                              " req/s, so that the capacity is at least that and not judged: " + joined(all_kept));
    if (!none_kept.empty())
        out.notices.push_back("capacity: the objective was not kept at the lowest rate of the search, " +
                              shown(search.lowest) +
                              " req/s, so that the capacity counts as 0, which is no more than a bound, and is not "
                              "judged: " + joined(none_kept));
    return out;
}

}  // namespace patchbay::experiment
