// What a configuration leaves to the model and the machine, decided before any weight is read. Used by Engine::create
// and, through explain_automatic(), by `patchbay config show`.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "config/load.hpp"
#include "host/registry.hpp"
#include "runner/kv_dtypes.hpp"
#include "weights/loader.hpp"

namespace patchbay::execution {

struct ModelChoice {
    weights::FlatConfig config;        // config.json, or the shape
    weights::WeightSource source;      // opened, not read
    std::string architecture, plugin;
    weights::WeightForm weights;
    runner::KvDTypes kv_dtypes;
    std::string note{};                // for the log, where config.json is not followed; mostly empty
};
// The same engine with the weights in another folder or file.
config::EngineConfig with_weights(config::EngineConfig, const std::string& path);
// max_model_len, where it is above the range from which on the model scales its positions by it, so that its KV depends
// on it; else 0.
uint32_t position_length(const weights::FlatConfig&, uint32_t max_model_len);
enum class Numbers { kSome, kNone /* weights are shapes only: the device computes nothing */ };
Result<ModelChoice> choose_model(const config::EngineConfig&, const host::Registry&, Numbers);

// ranks_here: that share the cores of this process.
uint32_t choose_threads(const config::EngineSettings&, uint32_t ranks_here = 1);
const char* dtype_word(pb_dtype);

// Gives each value that is left to be chosen the origin "automatic: what it becomes, and why". The value stays as it
// is, so that the configuration means the same on another machine.
void explain_automatic(config::Loaded&, const host::Registry&);

}  // namespace patchbay::execution
