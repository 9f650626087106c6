// The variants of an experiment made ready: configurations loaded, engines tried once, differences laid open. So a
// mistake in the last variant shows before the first run, not after an hour.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/load.hpp"
#include "engine/engine.hpp"
#include "experiment/input_files.hpp"
#include "experiment/matrix.hpp"
#include "experiment/spec.hpp"
#include "experiment/timed_swaps.hpp"
#include "experiment/workload.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"

namespace patchbay::experiment {

struct LoadedParts {
    engine::EngineFacts facts{};              // before any swap
    std::vector<host::Identity> brought_in{}; // by swaps of `at`
};

struct PreparedVariant {
    std::string name;
    config::Node patch;                         // with `at`, where it has that
    config::Loaded loaded;
    config::Node own_keys;                      // in effect: workload, warmup, simulation
    std::vector<SwapTask> swaps;                // in each of its runs
    engine::EngineFacts facts{};                // once tried
    std::vector<host::Identity> brought_in{};   // likewise, by `swaps`
    std::vector<ConfigDifference> differences;  // from the baseline, once tried
};

struct PreparedVariants {
    std::vector<PreparedVariant> variants;
    size_t baseline = 0;
    std::shared_ptr<const text::Tokenizer> tokenizer; // of the baseline; may be null
    std::vector<InputFile> tokenizer_files;           // that it was made of; of a GGUF file none
    WorkloadLimits limits;                            // of what all of them take
};

// Configurations only.
Result<PreparedVariants> prepare_variants(const ExperimentSpec&, const host::Registry&);
Result<PreparedVariant> prepare_variant(const ExperimentSpec&, size_t variant, const host::Registry&);
// What an engine of a variant says, once made; its swaps were prepared too, and it took a request of the workload.
Result<LoadedParts> try_one(const PreparedVariant&, const WorkloadSpec&, const host::Registry&, host::Prober&, Clock&,
                            parallel::World&);
using TryOne = std::function<Result<LoadedParts>(size_t variant)>;
// Tries each once, and fills in what that shows.
Result<> try_out(PreparedVariants&, const TryOne&);

// Configuration and automatic choices as one tree, and which of its paths a set of changed keys may change.
FlatTree effective_tree(const config::Loaded&, const engine::EngineFacts&);
std::vector<std::string> explained_paths(const std::vector<std::string>& declared);

std::string facts_json(const engine::EngineFacts&);
std::string plugins_json(const PreparedVariant&);

}  // namespace patchbay::experiment
