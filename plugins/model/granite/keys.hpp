// What `granite` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kGraniteKeys[] = {
    only("model_type", "granite"), reads("hidden_act"), reads("attention_bias"), reads("mlp_bias"),
    reads("embedding_multiplier"), reads("residual_multiplier"), reads("attention_multiplier"),
    reads("logits_scaling"),
};

inline constexpr Keys kGraniteTables[] = {kGraniteKeys, kNoWindowKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
