// Two checkpoints of the demo model, engines of them, and what each says.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "host/registry.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::testing {

std::string demo_path(const char* name = "demo-target");

// The demo model, as further training might have left it: a bit of its numbers is another.
class OtherCheckpoint {
  public:
    OtherCheckpoint();
    ~OtherCheckpoint();
    std::string path() const { return (folder_ / "other").string(); }

  private:
    const std::filesystem::path folder_;
};

config::EngineConfig demo_engine(const std::string& path);
host::Registry with_models_of(const std::string& folder); // of the build's tests: which serve the demo models

struct Asked {
    std::vector<TokenId> prompt;
    uint32_t tokens;
};
std::map<RequestId, Asked> ask(Swapping&, uint64_t seed, size_t count); // greedy

// What an engine with this checkpoint goes on with after these tokens.
std::vector<TokenId> continued(const config::EngineConfig&, std::vector<TokenId> prompt, uint32_t tokens,
                               parallel::World* = nullptr);
// Each text is what was said at `then`, and what the other engine goes on with. How many it goes on with in another way
// than the first one would.
size_t expect_continued(const Texts& texts, const Texts& then, const std::map<RequestId, Asked>&,
                        const config::EngineConfig& first, const config::EngineConfig& other,
                        parallel::World* = nullptr);

}  // namespace patchbay::engine::testing
