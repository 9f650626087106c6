// What `eagle` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kEagleKeys[] = {
    only("model_type", "llama"), reads("hidden_act"), reads("attention_bias"), reads("mlp_bias"),
    ignores("pretraining_tp"), reads("bias"), reads("draft_vocab_size"),
};

inline constexpr Keys kEagleTables[] = {kEagleKeys, kNoWindowKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
