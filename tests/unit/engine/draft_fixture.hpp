// Runs with and without drafts, of the demo models and of small ones, for tests of proposers that draft with a model.
#pragma once
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing {

config::EngineConfig demo(const std::string& model = "models/demo-target");
// A folder with the shape of a model, for dummy weights.
std::string folder_of(const std::map<std::string, std::string>& shape, const std::string& name);
config::EngineConfig short_of_pages(config::EngineConfig, uint32_t pages);

struct Case {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
};

constexpr uint32_t kVocab = 2048; // of the demo models

// Greedy and seeded, of several lengths; each but every third begins as the one before.
std::vector<Case> cases(size_t count, uint32_t vocab = kVocab);

struct Ran {
    std::vector<Output> outputs;
    uint64_t drafted = 0, accepted = 0, preemptions = 0, faults = 0, cached = 0, draft_tokens = 0, draft_passes = 0;
    std::array<uint64_t, DraftReport::kPositions> drafted_at{}, accepted_at{};
};

Ran run(const config::EngineConfig&, const std::vector<Case>&); // expects that nothing is left over, and no fault
void expect_same_texts(const Ran& with, const Ran& without, const std::string& what);
// Runs, and expects drafts, some right and some wrong, that change no text.
Ran expect_unchanged(const config::EngineConfig&, const std::vector<Case>&, const Ran& without,
                     const std::string& what);
std::string refusal(const config::EngineConfig&); // empty: the engine was created

}  // namespace patchbay::engine::testing
