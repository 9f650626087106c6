// What `gemma` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kGemmaKeys[] = {
    only("use_bidirectional_attention", "false"), reads("attention_bias"),
};

inline constexpr ConfigKey kGemma1Keys[] = {
    only("model_type", "gemma"), reads("hidden_act"), only("hidden_activation", "gelu_pytorch_tanh"),
};

// Of 2 and 3.
inline constexpr ConfigKey kGemmaWindowKeys[] = {
    reads("hidden_activation"), reads("query_pre_attn_scalar"), reads("final_logit_softcapping"),
    reads("sliding_window"), reads_list("layer_types"), ignores("hidden_act"), ignores("_sliding_window_pattern"),
};

inline constexpr ConfigKey kGemma2Keys[] = {
    only("model_type", "gemma2"), reads("attn_logit_softcapping"),
    ignores_unless("sliding_window_pattern", "2", "of Gemma 2 every second layer slides"),
};

inline constexpr ConfigKey kGemma3Keys[] = {
    only("model_type", "gemma3_text gemma3"), reads("sliding_window_pattern"), reads("rope_local_base_freq"),
    ignores_unless("attn_logit_softcapping", "", "Gemma 3 in transformers does not cap attention's scores"),
};

// Of the whole model, around text_config.
inline constexpr ConfigKey kGemma3VisionKeys[] = {
    only("model_type", "gemma3"), reads_map("text_config"), ignores("vision_config"),
    ignores("mm_tokens_per_image"), ignores("boi_token_index"), ignores("eoi_token_index"),
    ignores("image_token_index"),
};

inline constexpr Keys kGemma1Tables[] = {kGemma1Keys, kNoWindowKeys, kGemmaKeys,
                                        kDecoderKeys, kRopeKeys, kCommonKeys};
inline constexpr Keys kGemma2Tables[] = {kGemma2Keys, kGemmaWindowKeys, kGemmaKeys,
                                        kDecoderKeys, kRopeKeys, kCommonKeys};
inline constexpr Keys kGemma3Tables[] = {kGemma3Keys, kGemmaWindowKeys, kGemmaKeys,
                                        kDecoderKeys, kRopeKeys, kCommonKeys};
inline constexpr Keys kGemma3VisionTables[] = {kGemma3VisionKeys, kCommonKeys};

}  // namespace patchbay::config_keys
