// What `phi3` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kPhi3Keys[] = {
    only("model_type", "phi3"), reads("hidden_act"), reads("sliding_window"),
    only("layer_types", "", "its layers are alike"),
    ignores_unless("attention_bias", "false", "Phi 3 has no such biases"), ignores("embd_pdrop"),
    ignores("resid_pdrop"),
};

inline constexpr Keys kPhi3Tables[] = {kPhi3Keys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
