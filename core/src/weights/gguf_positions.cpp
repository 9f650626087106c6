// How GGUF files scale rotary positions.

#include "weights/gguf_keys.hpp"

namespace patchbay::weights {
namespace {

// A factor for each pair of a head, which its frequency is divided by: what Llama 3's scaling comes to.
Result<> read_factors(GgufKeys& keys, int64_t head_dim) {
    const std::string type = keys.own("rope.scaling.type");
    if (keys.has(type) && keys.find(type)->text() != "none")
        return keys.fault(type, "none, since rope_freqs.weight scales positions");
    PB_CHECK(keys.only("rope.scale_linear", 1, ", since rope_freqs.weight scales positions"));
    PB_CHECK(keys.copy_numbers("rope_freqs.weight", head_dim / 2, "rope_scaling.short_factor"));
    keys.out["rope_scaling.rope_type"] = "longrope";
    keys.out["rope_scaling.attention_factor"] = "1";
    keys.out["original_max_position_embeddings"] = keys.out["max_position_embeddings"];  // they hold for all positions
    return {};
}

Result<> read_scaling(GgufKeys& keys) {
    const std::string type_key = keys.own("rope.scaling.type");
    const GgufValue* const given = keys.find(type_key);
    if (!given && keys.has(keys.own("rope.scale_linear"))) {
        PB_CHECK(keys.copy_number("rope.scale_linear", "rope_scaling.factor"));
        keys.out["rope_scaling.rope_type"] = "linear";
    }
    if (!given || given->text() == "none") return {};
    if (given->text() != "linear" && given->text() != "yarn") return keys.fault(type_key, "none, linear or yarn");
    keys.out["rope_scaling.rope_type"] = *given->text();
    PB_CHECK(keys.copy_number("rope.scaling.factor", "rope_scaling.factor"));
    PB_CHECK(keys.only("rope.scaling.attn_factor", 1));
    if (given->text() != "yarn") return {};
    PB_CHECK(keys.copy_number_if_there("rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"));
    PB_CHECK(keys.copy_number_if_there("rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow"));
    PB_CHECK(keys.copy_number_if_there("rope.scaling.yarn_attn_factor", "rope_scaling.attention_factor"));
    return keys.copy_integer_if_there("rope.scaling.original_context_length",
                                      "rope_scaling.original_max_position_embeddings");
}

// Phi 3's: the part of a head that turns, and factors for short sequences and for long ones, of which models take the
// first.
Result<> read_phi3(GgufKeys& keys, int64_t head_dim) {
    PB_TRY(const int64_t turning, keys.copy_turning_part(head_dim, "partial_rotary_factor"));
    if (!keys.has_tensor("rope_factors_short.weight")) return read_scaling(keys);
    keys.out["rope_scaling.rope_type"] = "longrope";
    PB_CHECK(keys.copy_numbers("rope_factors_short.weight", turning / 2, "rope_scaling.short_factor"));
    PB_CHECK(keys.copy_number_if_there("rope.scaling.attn_factor", "rope_scaling.attention_factor"));
    return keys.copy_integer("rope.scaling.original_context_length", "original_max_position_embeddings");
}

}  // namespace

Result<> read_gguf_positions(GgufKeys& keys, int64_t head_dim) {
    keys.out["rope_theta"] = "10000";
    PB_CHECK(keys.copy_number_if_there("rope.freq_base", "rope_theta"));
    if (keys.architecture == "phi3") return read_phi3(keys, head_dim);
    if (keys.has_tensor("rope_freqs.weight")) return read_factors(keys, head_dim);
    return read_scaling(keys);
}

}  // namespace patchbay::weights
