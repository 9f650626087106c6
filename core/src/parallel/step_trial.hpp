// A step whose results count once all ranks have finished it, since it may be computed anew if one of them fails in it.
// Part of HubState.
#pragma once
#include <cstdint>
#include <optional>

#include "base/result.hpp"

namespace patchbay::parallel {

class StepTrial {
  public:
    void begin(uint64_t step) {
        step_ = step;
        fault_.reset();
        is_given_up_ = false;
    }
    void end() { begin(0); }
    bool is_of(uint64_t step) const { return step_ == step; }
    // A rank failed in this step. False: that is no news, since it follows from a fault that is known.
    bool fails(Failure why) {
        if (fault_ || is_given_up_) return false;
        fault_ = std::move(why);
        return true;
    }
    void give_up() { is_given_up_ = true; } // ranks that wait for others fail from now on
    const std::optional<Failure>& fault() const { return fault_; } // of the first rank that failed

  private:
    uint64_t step_ = 0; // 0: there is none
    std::optional<Failure> fault_;
    bool is_given_up_ = false;
};

}  // namespace patchbay::parallel
