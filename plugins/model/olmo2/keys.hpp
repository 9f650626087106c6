// What `olmo2` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kOlmo2Keys[] = {
    only("model_type", "olmo2"), reads("hidden_act"), reads("attention_bias"),
    only("head_dim", "", "it is hidden_size over num_attention_heads"),
};

inline constexpr Keys kOlmo2Tables[] = {kOlmo2Keys, kNoWindowKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
