// An experiment against itself: every variant is the baseline, so that whatever is shown is false. How often that
// happens on a machine and workload is what its verdicts are worth there.
#pragma once
#include <cstdint>
#include <string>

#include "config/document.hpp"
#include "experiment/conclusion.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

// The file with as many copies of its baseline as it has variants (two at least), and the seed of the nth such
// experiment.
config::Node against_itself(const ExperimentSpec&, uint32_t n);

class FalseRates {
  public:
    void add(const Conclusion&);
    // Lines for people: counts, shares and their 95 % intervals.
    std::string text() const;

  private:
    struct Count {
        uint64_t false_ones = 0, of = 0;
        void add(bool is_false) {
            false_ones += is_false;
            of += 1;
        }
    };
    Count experiments_, verdicts_, sentences_, intervals_;
    uint32_t unjudged_ = 0, unchanged_ = 0; // experiments
};

}  // namespace patchbay::experiment
