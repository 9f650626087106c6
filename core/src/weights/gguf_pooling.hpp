// What a GGUF file says of embeddings. For the server.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.hpp"

namespace patchbay::weights {

constexpr int64_t kGgufPoolingMean = 1, kGgufPoolingLast = 3; // 0: none, 2: CLS, 4: rank
// Its architecture's pooling_type; none: there is no such key.
Result<std::optional<int64_t>> read_gguf_pooling(const std::filesystem::path& file);

}  // namespace patchbay::weights
