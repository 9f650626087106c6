// The highest rate of arrivals at which a variant keeps an objective, in each repeat by bisection. A repeat's requests
// are the same at every rate, only faster, so that its answer is nearly a step from kept to not kept; how sure the mean
// of the repeats is follows from how they differ.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiment/matrix.hpp"
#include "experiment/run_summary.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

class RateSearch { // of one variant in one repeat
  public:
    explicit RateSearch(const CapacitySearch& s)
        : precision_(s.precision), lowest_(s.lowest), highest_(s.highest), low_(s.lowest), high_(s.highest) {}

    std::optional<double> next() const; // the rate to try; none: it is found
    void add(double rate, bool kept);
    void fail() { failed_ = true; }     // a run of it is not valid: there is no answer
    double found() const;               // the highest rate that was kept; 0: not even the lowest; NaN: no answer
    bool is_beyond() const { return !failed_ && !was_missed_; } // the highest rate of the search was kept

  private:
    double precision_, lowest_, highest_;
    double low_, high_;                 // kept up to low_, not from high_ on, once seen
    bool was_kept_ = false, was_missed_ = false, failed_ = false, none_ = false;
};

struct Capacities {
    std::vector<std::vector<double>> found; // by variant and repeat; NaN: none
    std::vector<std::vector<bool>> beyond;  // likewise: the highest rate was kept, the capacity is at least that
    std::vector<std::string> notices;
};

// Runs these slots; their summaries, in their order, of the attempt that counts. Fewer: it was interrupted.
using RunRound = std::function<Result<std::vector<RunSummary>>(const std::vector<RunSlot>&)>;
// All searches go forward together, a run of each at a time, in the order in which runs of the experiment take turns.
Result<Capacities> find_capacities(const CapacitySearch&, const std::vector<std::string>& variants, uint32_t repeats,
                                   uint64_t seed, const RunRound&);

bool keeps(const CapacitySearch&, const RunSummary&);

}  // namespace patchbay::experiment
