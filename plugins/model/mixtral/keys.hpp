// What `mixtral` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kMixtralKeys[] = {
    only("model_type", "mixtral"), reads("hidden_act"), reads("sliding_window"), reads("num_local_experts"),
    reads("num_experts"), reads("num_experts_per_tok"), only("layer_types", "", "its layers are alike"),
    ignores_unless("attention_bias", "false", "Mixtral has no such biases"), ignores("output_router_logits"),
    ignores("router_aux_loss_coef"), ignores("router_jitter_noise"),
};

inline constexpr Keys kMixtralTables[] = {kMixtralKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
