// The older form of a byte-level tokenizer: vocab.json and merges.txt, with the rest implied by the name of a class.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"

namespace patchbay::text {

// The tokenizer.json that such a folder stands for. config: its tokenizer_config.json.
Result<nlohmann::json> read_vocab_and_merges(const std::filesystem::path& folder, const nlohmann::json& config);

}  // namespace patchbay::text
