// llama - Llama 2 and 3, Mistral, Ministral, TinyLlama, the text of Mistral 3: pre-norm decoder layers, rotary
// positions, grouped queries, gated SiLU.
#include "patchbay/sdk/decoder_blocks.hpp"
#include "patchbay/sdk/text_part.hpp"

#include "keys.hpp"

namespace {

class Llama : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"LlamaForCausalLM", "MistralForCausalLM", "MinistralForCausalLM",
                                                     "Mistral3ForConditionalGeneration", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {
        {kArchitectures[0], patchbay::config_keys::kLlamaTables},
        {kArchitectures[1], patchbay::config_keys::kMistralTables},
        {kArchitectures[2], patchbay::config_keys::kMistralTables},
        {kArchitectures[3], patchbay::config_keys::kMistral3Tables},
    };

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const auto name = config.find("architectures.0");
        const bool mistral = name == kArchitectures[1] || name == kArchitectures[2];
        if (name != kArchitectures[3]) return read(config, mistral, "");
        patchbay::check_keys(config, patchbay::config_keys::kMistral3Tables);
        const patchbay::TextPart text(config, {});
        return read(patchbay::ModelConfig(text.config, config.host()), true, "language_model.");
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return shape.kv(windows_[layer], shape.usual_scale()); }

  private:
    // begin: what the names of all weights begin with.
    pb_model_facts read(const patchbay::ModelConfig& config, bool mistral, const std::string& begin) {
        patchbay::check_keys(config, mistral ? patchbay::config_keys::kMistralTables
                                             : patchbay::config_keys::kLlamaTables);
        const uint32_t positions = mistral ? 1 << 17 : 2048;
        shape = patchbay::decoder_shape(config, {.positions = positions});
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        const uint32_t window = mistral ? patchbay::sliding_window(config, 4096) : 0;
        windows_ = patchbay::layer_windows(config, shape.layers, window, [&](uint32_t) { return window > 0; });
        config.one_of("hidden_act", {"silu"});

        const bool bias = !mistral && config.get<bool>("attention_bias", false),
                   mlp_bias = !mistral && config.get<bool>("mlp_bias", false);
        ends = patchbay::DecoderEnds::list(weights, config, shape,
                                           {.root = begin + "model.", .head = begin + "lm_head"});
        rotary = patchbay::Rotary::list(weights, shape,
                                        patchbay::rope_settings(config, {.positions_if_missing = positions}),
                                        shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = begin + "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {bias, bias});
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.", mlp_bias);
        }
        return ends.facts(shape);
    }

    std::vector<uint32_t> windows_; // by layer
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Llama>({.name = "llama", .version = "1.1.0", .summary = "Llama 2 and 3, Mistral, TinyLlama"}))
