// What `falcon` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kFalconKeys[] = {
    only("model_type", "falcon"), reads("hidden_size"), reads("n_embed"), reads("num_hidden_layers"), reads("n_layer"),
    reads("num_attention_heads"), reads("n_head"), reads("num_kv_heads"), reads("ffn_hidden_size"),
    reads("max_position_embeddings"), reads("activation"), reads("layer_norm_epsilon"), reads("alibi"), reads("bias"),
    reads("multi_query"), reads("new_decoder_architecture"), reads("parallel_attn"), reads("num_ln_in_parallel_attn"),
    ignores("hidden_dropout"), ignores("ffn_factor"), ignores("num_key_value_heads"), ignores("intermediate_size"),
    ignores("apply_residual_connection_post_layernorm"),
};

inline constexpr Keys kFalconTables[] = {kFalconKeys, kNoWindowKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
