// The other ranks of an engine: started before the model is loaded, sent every batch, and consulted when a step fails.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/engine_config.hpp"
#include "host/registry.hpp"
#include "parallel/group.hpp"
#include "parallel/world.hpp"
#include "runner/ranks.hpp"

namespace patchbay::execution {

struct OtherRanks { // at most one of the two; neither: there are none
    std::unique_ptr<parallel::Group> group;
    std::unique_ptr<runner::SimulatedRanks> simulated; // of a device that computes nothing

    runner::Ranks* get() const { return group ? static_cast<runner::Ranks*>(group.get()) : simulated.get(); }
    // By rank: "node1 (pid 4711)"; one, if all are in this process.
    std::vector<std::string> names(uint32_t count) const;
};

// world: where they come from; null: they are started here.
Result<OtherRanks> start_ranks(const config::EngineConfig&, const host::Registry&, const pb_device_info&,
                               parallel::World* world);

}  // namespace patchbay::execution
