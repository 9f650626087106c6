// What `gpt2` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kGpt2Keys[] = {
    only("model_type", "gpt2"), reads("n_embd"), reads("n_inner"), reads("n_layer"), reads("n_head"),
    reads("n_positions"), reads("layer_norm_epsilon"), reads("activation_function"), reads("scale_attn_weights"),
    reads("scale_attn_by_inverse_layer_idx"), ignores("reorder_and_upcast_attn"), ignores("n_ctx"),
    ignores("attn_pdrop"), ignores("embd_pdrop"), ignores("resid_pdrop"), ignores("summary_activation"),
    ignores("summary_first_dropout"), ignores("summary_proj_to_labels"), ignores("summary_type"),
    ignores("summary_use_proj"), reads("hidden_size"), reads("num_hidden_layers"), reads("num_attention_heads"),
    reads("max_position_embeddings"),
};

inline constexpr Keys kGpt2Tables[] = {kGpt2Keys, kNoWindowKeys, kCommonKeys};

}  // namespace patchbay::config_keys
