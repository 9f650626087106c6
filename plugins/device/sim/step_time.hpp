// The time that a step is charged. While a graph is recorded, the work of ops goes to the graph instead.
#pragma once
#include <cmath>
#include <optional>

#include "hardware.hpp"

namespace patchbay {

struct RecordedOps { // of a graph
    double ns = 0;      // without launches
    uint64_t count = 0;
};

class StepTime {
  public:
    explicit StepTime(Hardware hardware) : hardware_(std::move(hardware)) {}

    const Hardware& hardware() const { return hardware_; }
    void restart(); // for the next step: nothing is charged, and nothing is recorded

    // Launches overlap with nothing. Recording an op takes the host as long as launching one.
    void charge(const Work&) noexcept;
    void charge(const pb_cost&) noexcept; // of another plugin, which says its launches itself; never recorded
    void replay(const RecordedOps&) noexcept;

    bool is_recording() const { return recorded_.has_value(); }
    void start_recording() { recorded_.emplace(); }
    RecordedOps stop_recording();

    // As sdk/device.hpp wants them.
    uint64_t host_ns() const noexcept { return static_cast<uint64_t>(std::llround(hardware_.step_overhead_ns)); }
    uint64_t charged_ns() const noexcept { return static_cast<uint64_t>(std::llround(charged_ns_)); }

  private:
    const Hardware hardware_;
    double charged_ns_ = 0; // in this step
    std::optional<RecordedOps> recorded_; // so far; none: ops are charged at once
};

}  // namespace patchbay
