// What `medusa` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kMedusaKeys[] = {
    ignores("model_type"), reads("hidden_size"), reads("num_hidden_layers"), reads("medusa_num_heads"),
    reads("medusa_num_layers"), reads("max_position_embeddings"), ignores("base_model_name_or_path"),
    ignores("version"),
};

inline constexpr Keys kMedusaTables[] = {kMedusaKeys, kCommonKeys};

}  // namespace patchbay::config_keys
