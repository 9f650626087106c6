// What `starcoder2` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kStarCoder2Keys[] = {
    only("model_type", "starcoder2"), reads("hidden_act"), reads("norm_epsilon"), reads("sliding_window"),
    reads("use_bias"), ignores("residual_dropout"), ignores("embedding_dropout"), ignores("rms_norm_eps"),
    only("norm_type", "layer_norm"), only("mlp_type", "default"), only("layer_types", "", "its layers are alike"),
    only("head_dim", "", "it is hidden_size over num_attention_heads"),
};

inline constexpr Keys kStarCoder2Tables[] = {kStarCoder2Keys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
