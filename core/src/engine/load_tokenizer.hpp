// The tokenizer of a configuration, as its engine has it. Beside the engine, those use it who prepare texts for engines
// of other processes.
#pragma once
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::config {
struct EngineConfig;
}

namespace patchbay::engine {

// A model folder, a tokenizer's file or a GGUF file.
Result<std::shared_ptr<const text::Tokenizer>> load_tokenizer(const std::filesystem::path&);

// Null: ids only. reads_weights: false of dummy weights, whose folder, if there is one, may have no tokenizer.
Result<std::shared_ptr<const text::Tokenizer>> load_tokenizer(const config::EngineConfig&, bool reads_weights);

}  // namespace patchbay::engine
