// What `stablelm` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

inline constexpr ConfigKey kStableLmKeys[] = {
    only("model_type", "stablelm"), reads("hidden_act"), reads("layer_norm_eps"), reads("use_parallel_residual"),
    reads("use_qkv_bias"), only("qk_layernorm", "false", "norms of each head with weights of their own"),
    ignores("hidden_dropout"), ignores("rms_norm_eps"),
};

inline constexpr Keys kStableLmTables[] = {kStableLmKeys, kNoWindowKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
