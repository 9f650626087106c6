// Which token ids end an output, by a model's own files. Used by the engine.
#pragma once
#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::weights {

// eos_token_id (one, a list, or null) of the config and of the folder's generation_config.json, which may be missing:
// both count. Ascending; an id outside the vocabulary is refused. folder: empty if the model is only a shape.
Result<std::vector<int32_t>> end_tokens(const FlatConfig&, const std::filesystem::path& folder, uint32_t vocab_size);

}  // namespace patchbay::weights
