// The same requests at another rate: their arrivals are moved, all else stays.
#pragma once
#include "experiment/spec.hpp"
#include "experiment/workload.hpp"

namespace patchbay::experiment {

class PacedRequests final : public Requests {
  public:
    // pace: arrivals come so many times as fast.
    PacedRequests(const Requests& given, double pace) : given_(given), pace_(pace) {}
    uint32_t size() const override { return given_.size(); }
    uint64_t arrival_ns(uint32_t i) const override;
    std::optional<uint32_t> follows(uint32_t i) const override { return given_.follows(i); }
    PlannedRequest make(uint32_t) const override;

  private:
    const Requests& given_;
    double pace_;
};

// By which arrivals have the rate, in requests (or sessions) per second: the rate that the file gives, or, where it
// gives none, the mean rate of these.
double pace_of(const Arrivals&, const Requests&, double rate);

}  // namespace patchbay::experiment
