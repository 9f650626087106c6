// The requests of a run that have a time of their own, by that time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "experiment/workload.hpp"

namespace patchbay::experiment {

class TimedRequests {
  public:
    TimedRequests(const Requests&, uint64_t start_ns); // of the run

    // The next request that arrives by this time. After those, the ones at the next time to come: an engine without
    // work waits for them. Nothing: there is none, or the engine has one to wait for.
    std::optional<uint32_t> next(uint64_t now_ns);
    void drop_rest() { taken_ = order_.size(); }

  private:
    const Requests& planned_;
    const uint64_t start_ns_;
    std::vector<uint32_t> order_;
    size_t taken_ = 0;
    uint64_t taken_until_ns_ = 0; // the engine has all that arrive by then
};

}  // namespace patchbay::experiment
