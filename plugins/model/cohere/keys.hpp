// What `cohere` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kAllCohereKeys[] = {
    reads("hidden_act"), reads("layer_norm_eps"), reads("logit_scale"), reads("attention_bias"),
    reads("model_max_length"), ignores("rms_norm_eps"),
};

inline constexpr ConfigKey kCohereKeys[] = {
    only("model_type", "cohere"),
    only("use_qk_norm", "false", "norms of each head with weights of their own (Command R+)"),
};

inline constexpr ConfigKey kCohere2Keys[] = {
    only("model_type", "cohere2"), reads("sliding_window"), reads("sliding_window_pattern"), reads_list("layer_types"),
    ignores("_sliding_window_pattern"), only("use_qk_norm", "false"), only("use_parallel_block", "true"),
    only("use_embedding_sharing", "true"), only("use_gated_activation", "true"),
    ignores_unless("layer_switch", "4", "sliding_window_pattern says which layers slide"),
    only("position_embedding_type", "rope_gptj"), only("order_of_interleaved_layers", "local_attn_first"),
    only("rotary_pct", "1"), ignores("use_parallel_embedding"), ignores("cache_implementation"),
};

inline constexpr Keys kCohereTables[] = {kCohereKeys, kAllCohereKeys, kNoWindowKeys,
                                         kDecoderKeys, kRopeKeys, kCommonKeys};
inline constexpr Keys kCohere2Tables[] = {kCohere2Keys, kAllCohereKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
