// What `opt` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kOptKeys[] = {
    only("model_type", "opt"), reads("hidden_size"), reads("ffn_dim"), reads("num_hidden_layers"),
    reads("num_attention_heads"), reads("max_position_embeddings"), reads("activation_function"),
    reads("layer_norm_elementwise_affine"), reads("word_embed_proj_dim"), reads("do_layer_norm_before"),
    reads("_remove_final_layer_norm"), reads("enable_bias"), ignores("dropout"), ignores("activation_dropout"),
    ignores("layerdrop"), ignores("init_std"),
};

inline constexpr Keys kOptTables[] = {kOptKeys, kNoWindowKeys, kCommonKeys};

}  // namespace patchbay::config_keys
