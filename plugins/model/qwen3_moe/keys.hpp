// What `qwen3_moe` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kQwen3MoeKeys[] = {
    only("model_type", "qwen3_moe"), reads("hidden_act"), reads("attention_bias"), reads("use_sliding_window"),
    reads("sliding_window"), reads("num_experts"), reads("num_local_experts"), reads("num_experts_per_tok"),
    reads("moe_intermediate_size"), reads("norm_topk_prob"), reads("decoder_sparse_step"),
    reads_list("mlp_only_layers"), only("layer_types", "", "its layers are alike"), ignores("max_window_layers"),
    only("shared_expert_intermediate_size", "0", "it has no shared expert"), ignores("output_router_logits"),
    ignores("router_aux_loss_coef"),
};

inline constexpr Keys kQwen3MoeTables[] = {kQwen3MoeKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
