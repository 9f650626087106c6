// What `llama` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kLlamaKeys[] = {
    only("model_type", "llama"), reads("hidden_act"), reads("attention_bias"), reads("mlp_bias"),
    ignores("pretraining_tp"),
    only("sliding_window", "", "transformers reads it for the cache, not for what a prompt sees; Mistral has windows"),
    only_each("layer_types", "full_attention", "its layers are alike; Mistral's may have windows"),
};

inline constexpr ConfigKey kMistralKeys[] = {
    only("model_type", "mistral ministral"), reads("hidden_act"), reads("sliding_window"), reads_list("layer_types"),
    ignores_unless("attention_bias", "false", "Mistral has no such biases"),
    ignores_unless("mlp_bias", "false", "Mistral has no such biases"), ignores("pretraining_tp"),
};

// Of the whole model, around text_config.
inline constexpr ConfigKey kMistral3Keys[] = {
    only("model_type", "mistral3"), reads_map("text_config"), ignores("vision_config"), ignores("image_token_index"),
    ignores("image_token_id"), ignores("projector_hidden_act"), ignores("vision_feature_layer"),
    ignores("multimodal_projector_bias"), ignores("spatial_merge_size"),
};

inline constexpr Keys kMistral3Tables[] = {kMistral3Keys, kCommonKeys};
inline constexpr Keys kLlamaTables[] = {kLlamaKeys, kDecoderKeys, kRopeKeys, kCommonKeys};
inline constexpr Keys kMistralTables[] = {kMistralKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
