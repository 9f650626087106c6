// Random worlds for a plugin that is to be tried out: an engine of some size and requests that arrive, wait, share
// prefixes and are aborted, all of a seed. A world is written as a scenario file, which any engine replays, and has
// smaller ones, among which the smallest that still fails is looked for. Used by `patchbay plugin test --thorough`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace patchbay::scenario {

struct WorldRequest {
    uint32_t number = 0;               // "r3" in the file
    uint32_t prompt = 1, shared = 0;   // tokens; of these, so many that requests of the same family begin with
    uint32_t family = 0, max_tokens = 1, n = 1, beam_width = 0, priority = 0, tenant = 0, deadline_ms = 0;
    uint32_t expected_output_tokens = 0;
};

struct WorldEvent {
    enum class What { kAdd, kRun, kAbort, kWait };
    What what = What::kRun;
    WorldRequest request;   // of kAdd; of kAbort its number
    uint32_t number = 1;    // steps of kRun, ms of kWait
};

struct World {
    uint32_t block_size = 16, num_blocks = 64, budget = 256, seats = 16, threshold = 0;
    double watermark = 0;
    bool chunked = true, caching = true, offloads = false, reserves = false, overlaps = false;
    std::vector<WorldEvent> events; // then every request is to end
};

World random_world(uint64_t seed);

// kind: "scheduler" or "kv_policy", of which the component `name` is tried.
std::string text_of(const World&, const std::string& kind, const std::string& name, const std::string& remark);

// Worlds that leave something out, the boldest first. Empty where nothing is left to leave out.
std::vector<World> smaller_worlds(const World&);

}  // namespace patchbay::scenario
