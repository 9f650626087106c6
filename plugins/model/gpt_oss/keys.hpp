// What `gpt_oss` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kGptOssKeys[] = {
    only("model_type", "gpt_oss"), reads("attention_bias"), reads("sliding_window"), reads_list("layer_types"),
    reads("num_experts"), reads("num_local_experts"), reads("num_experts_per_tok"), reads("swiglu_alpha"),
    reads("swiglu_limit"), ignores_unless("hidden_act", "silu", "the experts' gate is a clamped SwiGLU"),
    ignores("experts_per_token"), ignores("initial_context_length"), ignores("output_router_logits"),
    ignores("router_aux_loss_coef"),
};

inline constexpr Keys kGptOssTables[] = {kGptOssKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
