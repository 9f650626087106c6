// llama - Llama 2 and 3, Mistral, TinyLlama: pre-norm decoder layers, rotary positions, grouped queries, gated SiLU.
#include "patchbay/sdk/decoder_blocks.hpp"

namespace {

using patchbay::Forward;

class Llama : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"LlamaForCausalLM", "MistralForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        s_ = patchbay::decoder_shape(config);
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        const bool mistral = config.find("architectures.0") == kArchitectures[1];
        window_ = config.get_or_none<uint32_t>("sliding_window", mistral ? 4096 : 0);
        config.one_of("hidden_act", {"silu"});

        const bool bias = config.get<bool>("attention_bias", false), mlp_bias = config.get<bool>("mlp_bias", false);
        ends_ = patchbay::DecoderEnds::list(weights, config, s_);
        rotary_ = patchbay::Rotary::list(weights, s_, patchbay::rope_settings(config), s_.head_dim);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers_.emplace_back();
            l.norm = weights.vector(s_.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, s_, name + "self_attn.", {bias, bias});
            l.mlp_norm = weights.vector(s_.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, s_, name + "mlp.", mlp_bias);
        }
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(window_, s_.usual_scale()); }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, s_);
        const patchbay::RotaryAttention attention(f, s_);
        const patchbay::GatedMlp mlp(f, s_);
        f.embedding(stream.x, ends_.embedding);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            stream.enter_layer(f, i, l.norm, eps_);
            attention.run(f, i, l.attention, rotary_, stream, eps_);
            stream.enter_block(f, l.mlp_norm, eps_);
            mlp.run(f, l.mlp, stream);
        }
        ends_.logits(f, s_, stream, eps_);
    }

  private:
    struct Layer { // norm, mlp_norm: indices of weights
        uint32_t norm = 0, mlp_norm = 0;
        patchbay::AttentionWeights attention;
        patchbay::MlpWeights mlp;
    };
    patchbay::DecoderShape s_;
    float eps_ = 0;
    uint32_t window_ = 0;
    patchbay::DecoderEnds ends_;
    patchbay::Rotary rotary_;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Llama>({.name = "llama", .version = "1.1.0", .summary = "Llama 2 and 3, Mistral, TinyLlama"}))
