// Faults of a scenario file at the place that is being checked.
#pragma once
#include <string>

#include "config/document.hpp"

namespace patchbay::scenario {

class LocatedFaults {
  public:
    explicit LocatedFaults(config::Faults& faults) : faults_(faults) {}

    void move_to(const config::Origin& place) { place_ = &place; } // which outlives the check
    void add(const std::string& text) { faults_.add(place_ ? *place_ : config::Origin{}, text); }

  private:
    config::Faults& faults_;
    const config::Origin* place_ = nullptr;
};

}  // namespace patchbay::scenario
