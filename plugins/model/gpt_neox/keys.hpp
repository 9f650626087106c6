// What `gpt_neox` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kGptNeoxKeys[] = {
    only("model_type", "gpt_neox"), reads("hidden_size"), reads("intermediate_size"), reads("num_hidden_layers"),
    reads("num_attention_heads"), reads("max_position_embeddings"), reads("hidden_act"), reads("rotary_pct"),
    reads("rotary_emb_base"), reads("layer_norm_eps"), reads("use_parallel_residual"), reads("attention_bias"),
    ignores("hidden_dropout"), ignores("classifier_dropout"),
    only("num_key_value_heads", "", "each head has keys of its own"),
    only("head_dim", "", "it is hidden_size over num_attention_heads"),
};

inline constexpr Keys kGptNeoxTables[] = {kGptNeoxKeys, kNoWindowKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
