// One line on a terminal that says how far an experiment is and how long it will take. Nothing where standard error is
// no terminal.
#pragma once
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "experiment/run_experiment.hpp"

namespace patchbay::experiment {

// "[####......]  42 %  ETA 0:35  run 7/15  sjf, repeat 3  180/240 requests"; seconds < 0: not known yet.
std::string progress_line(const RunProgress&, double seconds_left, size_t width);

class ProgressBar {
  public:
    explicit ProgressBar(const Clock&);
    ~ProgressBar(); // wipes the line
    void update(const RunProgress&);

  private:
    const Clock& clock_;
    bool on_terminal_;
    bool drawn_ = false;
    uint64_t start_ns_, last_ns_;
};

}  // namespace patchbay::experiment
