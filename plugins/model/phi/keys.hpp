// What `phi` does with each key of config.json; docs/config-keys.md shows it.
#pragma once
#include "patchbay/sdk/config_keys.hpp"

namespace patchbay::config_keys {

// The head has a bias, which the token table has not: the two are never one.
inline constexpr ConfigKey kPhiKeys[] = {
    only("model_type", "phi"), reads("hidden_act"), reads("layer_norm_eps"), ignores("rms_norm_eps"),
    only("qk_layernorm", "false", "norms of q and k are not computed"),
    only("tie_word_embeddings", "false", "the head has a bias"),
    ignores("resid_pdrop"), ignores("embd_pdrop"),
};

inline constexpr Keys kPhiTables[] = {kPhiKeys, kNoWindowKeys, kDecoderKeys, kRopeKeys, kCommonKeys};

}  // namespace patchbay::config_keys
