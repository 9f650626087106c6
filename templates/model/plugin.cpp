// @name@ - a model: decoder layers with rotary positions, grouped queries and a gated MLP, each after a norm.
#include "patchbay/sdk/config_keys.hpp"
#include "patchbay/sdk/decoder_blocks.hpp"

namespace {

namespace keys = patchbay::config_keys;

// What it does with each key of config.json. Other values are refused; of a key that is in no table it warns.
constexpr keys::ConfigKey kOwnKeys[] = {keys::ignores("model_type"), keys::reads("hidden_act"),
                                        keys::only("attention_bias", "false"), keys::only("mlp_bias", "false")};
constexpr keys::Keys kTables[] = {kOwnKeys, keys::kNoWindowKeys, keys::kDecoderKeys, keys::kRopeKeys,
                                  keys::kCommonKeys};

class @Class@ : public patchbay::GatedDecoder { // forward() is the base's: docs/models.md shows one that writes its own
  public:
    // `architectures` of config.json names the plugin.
    static constexpr const char* kArchitectures[] = {"@Name@ForCausalLM", nullptr};

    // Reads config.json and lists the weights, by their names in the checkpoint. What it does not do it refuses.
    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, kTables);
        shape = patchbay::decoder_shape(config); // hidden_size, num_hidden_layers, num_attention_heads, …
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        ends = patchbay::DecoderEnds::list(weights, config, shape); // token table, last norm, lm head
        rotary = patchbay::Rotary::list(weights, shape, patchbay::rope_settings(config), shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.");
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.");
        }
        return ends.facts(shape);
    }

    pb_kv_spec kv_spec(uint32_t) const { return shape.kv(0, shape.usual_scale()); } // window 0: full attention
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "a decoder of the Llama kind"}))
