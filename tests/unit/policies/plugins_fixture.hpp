// Plugins of the build tree, and a scheduler's world small enough to write down.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/thread_pool.hpp"
#include "host/registry.hpp"
#include "must.hpp"

namespace patchbay::policies {

const host::Registry& registry();
const host::Services& services();

struct Planned {
    std::map<uint64_t, uint32_t> tokens; // by id
    std::vector<uint64_t> preempted, order;
};

// What a scheduler is shown; plan() asks it once and checks the contract.
class World {
  public:
    World(const std::string& plugin, const host::Settings& = {});
    pb_sequence& wait(uint64_t id, uint32_t prompt);                       // arrives at `id` milliseconds
    pb_sequence& run(uint64_t id, uint32_t prompt, uint32_t output, uint32_t computed);
    void arrive(const pb_sequence&); // the scheduler learns of it; wait() and run() only show it
    void finish(uint64_t id, uint32_t output_tokens);
    Planned plan();

    host::Scheduler scheduler;
    std::vector<pb_sequence> running, waiting;
    pb_scheduler_in in{};
};

}  // namespace patchbay::policies
