// llama - Llama 2 and 3, Mistral, TinyLlama: pre-norm decoder layers, rotary positions, grouped queries, gated SiLU.
#include "patchbay/sdk/decoder_blocks.hpp"

namespace {

class Llama : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"LlamaForCausalLM", "MistralForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        shape = patchbay::decoder_shape(config);
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        const bool mistral = config.find("architectures.0") == kArchitectures[1];
        window_ = config.get_or_none<uint32_t>("sliding_window", mistral ? 4096 : 0);
        config.one_of("hidden_act", {"silu"});

        const bool bias = config.get<bool>("attention_bias", false), mlp_bias = config.get<bool>("mlp_bias", false);
        ends = patchbay::DecoderEnds::list(weights, config, shape);
        rotary = patchbay::Rotary::list(weights, shape, patchbay::rope_settings(config), shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {bias, bias});
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.", mlp_bias);
        }
        return ends.facts(shape);
    }

    pb_kv_spec kv_spec(uint32_t) const { return shape.kv(window_, shape.usual_scale()); }

  private:
    uint32_t window_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Llama>({.name = "llama", .version = "1.1.0", .summary = "Llama 2 and 3, Mistral, TinyLlama"}))
