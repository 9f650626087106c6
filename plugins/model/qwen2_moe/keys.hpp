// What `qwen2_moe` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kQwen2MoeKeys[] = {
    only("model_type", "qwen2_moe"), reads("hidden_act"), reads("qkv_bias"), reads("use_sliding_window"),
    reads("sliding_window"), reads("max_window_layers"), reads_list("layer_types"), reads("num_experts"),
    reads("num_local_experts"), reads("num_experts_per_tok"), reads("moe_intermediate_size"),
    reads("shared_expert_intermediate_size"), reads("norm_topk_prob"), reads("decoder_sparse_step"),
    reads_list("mlp_only_layers"), ignores("output_router_logits"), ignores("router_aux_loss_coef"),
};

inline constexpr Keys kQwen2MoeTables[] = {kQwen2MoeKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
