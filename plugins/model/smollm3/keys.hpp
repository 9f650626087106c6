// What `smollm3` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kSmolLm3Keys[] = {
    only("model_type", "smollm3"), reads("hidden_act"), reads("attention_bias"), reads("mlp_bias"),
    reads_list("no_rope_layers"), reads("no_rope_layer_interval"), reads("use_sliding_window"),
    reads("sliding_window"), reads_list("layer_types"), ignores("pretraining_tp"), ignores("max_window_layers"),
};

inline constexpr Keys kSmolLm3Tables[] = {kSmolLm3Keys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
