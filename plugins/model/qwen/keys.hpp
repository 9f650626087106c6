// What `qwen` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kQwenWindowKeys[] = {
    reads("hidden_act"), reads("use_sliding_window"), reads("sliding_window"), reads("max_window_layers"),
    reads_list("layer_types"),
};

inline constexpr ConfigKey kQwen2Keys[] = {
    only("model_type", "qwen2"), ignores_unless("attention_bias", "true", "Qwen 2 always has it on q, k and v"),
    ignores("use_mrope"),
};

inline constexpr ConfigKey kQwen3Keys[] = {only("model_type", "qwen3"), reads("attention_bias")};

inline constexpr Keys kQwen2Tables[] = {kQwen2Keys, kQwenWindowKeys, kDecoderKeys, kRopeKeys, kCommonKeys};
inline constexpr Keys kQwen3Tables[] = {kQwen3Keys, kQwenWindowKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
