// Steps of a device: begun, ended or submitted, and waited for, at most two in flight. Where the device computes
// nothing, the time that it charges passes on the clock. Part of a ModelRunner's passes. [step thread]
#pragma once
#include <cstdint>
#include <deque>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runner/call_times.hpp"
#include "runner/open_device.hpp"

namespace patchbay::runner {

class DeviceSteps {
  public:
    DeviceSteps(const OpenDevice& device, Clock& clock) : device_(device), clock_(clock) {}

    void pass_host_time(); // what the host of a simulated machine does for a step, before the device gets it
    Result<> begin(CallTimes&);
    Result<> end(CallTimes&, uint64_t& ns); // ns: where time that nothing is computed in belongs

    // ---- in place of end(), where steps can be in flight
    bool can_submit() const;
    Result<> submit(bool samples);
    bool any_in_flight() const { return !in_flight_.empty(); }
    Result<bool> wait(); // ends the oldest; whether it samples
    void abandon();      // waits for all

  private:
    struct InFlight {
        bool samples;
        uint64_t ready_ns; // of a device that computes nothing: when it will be done
    };
    uint64_t busy_until(); // with the step that was ended last

    const OpenDevice& device_;
    Clock& clock_;
    uint64_t begin_ns_ = 0;      // of the latest step
    uint64_t busy_until_ns_ = 0; // of a device that computes nothing: with all that it was given
    std::deque<InFlight> in_flight_; // the oldest first
};

}  // namespace patchbay::runner
