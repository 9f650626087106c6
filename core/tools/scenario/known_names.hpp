// The requests that a scenario file has added so far, and faults where it names others.
#pragma once
#include <cstdint>
#include <set>
#include <string>

#include "scenario/located_faults.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

class KnownNames {
  public:
    explicit KnownNames(LocatedFaults& faults) : faults_(faults) {}

    void add(const Arrival&); // a fault where one of its outputs was added before

    // Each is a fault where no such output was added.
    void check(const std::string& name);
    void check(const Names&);
    void check_block(const std::string& name); // as "a/0"
    void check_blocks(const Names&);           // at most Blocks::kMaxListed
    void check_request(const std::string& name); // all of its outputs: a name of only one of several is a fault too
    template <class Map>
    void check_keys(const Map& map) {
        for (const auto& [name, value] : map) check(name);
    }

  private:
    LocatedFaults& faults_;
    std::set<std::string> outputs_, requests_;
    uint64_t unknown_ = 0; // names so far
};

}  // namespace patchbay::scenario
