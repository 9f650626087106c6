// What `bamba` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kBambaKeys[] = {
    only("model_type", "bamba"), reads("hidden_act"), reads("attention_bias"), reads("mlp_bias"),
    reads_list("attn_layer_indices"), reads("mamba_n_heads"), reads("mamba_d_head"), reads("mamba_n_groups"),
    reads("mamba_d_state"), reads("mamba_d_conv"), reads("mamba_expand"), reads("mamba_conv_bias"),
    reads("mamba_proj_bias"), reads_list("time_step_limit"),
    only("partial_rotary_factor", "0.5", "transformers always takes 0.5 there, and another from rope_parameters only"),
    only("sliding_window", "", "the architecture has no windows"),
    ignores("layers_block_type"), ignores("layer_types"), ignores("mamba_chunk_size"), ignores("num_logits_to_keep"),
    ignores("z_loss_coefficient"), ignores("use_mamba_kernels"), ignores("time_step_min"), ignores("time_step_max"),
    ignores("time_step_floor"),
};

inline constexpr Keys kBambaTables[] = {kBambaKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
