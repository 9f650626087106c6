// qwen - Qwen 2, 2.5 and 3: Llama's layers with a bias on q, k and v (2), or with each head of q and k normed (3).
#include "patchbay/sdk/decoder_blocks.hpp"

namespace {

using patchbay::Forward;

class Qwen : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen2ForCausalLM", "Qwen3ForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const bool qwen3 =
            config.one_of("architectures.0", {kArchitectures[0], kArchitectures[1]}) == kArchitectures[1];
        s_ = patchbay::decoder_shape(config, qwen3 ? 128 : 0);
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        const bool windows = config.get<bool>("use_sliding_window", false);
        const uint32_t full_layers = config.integer("max_window_layers", 0, 1 << 20, 28);
        windows_ =
            patchbay::layer_windows(config, s_.layers, windows ? config.integer("sliding_window", 0, 1 << 26, 4096) : 0,
                                    [&](uint32_t layer) { return windows && layer >= full_layers; });

        const bool bias = qwen3 ? config.get<bool>("attention_bias", false) : true;
        ends_ = patchbay::DecoderEnds::list(weights, config, s_);
        rotary_ = patchbay::Rotary::list(weights, s_, patchbay::rope_settings(config), s_.head_dim);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", attention = name + "self_attn.";
            Layer& l = layers_.emplace_back();
            l.norm = weights.vector(s_.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, s_, attention, {.qkv = bias, .out = qwen3 && bias});
            if (qwen3) l.attention.list_head_norms(weights, s_, attention);
            l.mlp_norm = weights.vector(s_.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, s_, name + "mlp.");
        }
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return s_.kv(windows_[layer], s_.usual_scale()); }

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
    std::vector<uint32_t> windows_; // by layer
    patchbay::DecoderEnds ends_;
    patchbay::Rotary rotary_;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Qwen>({.name = "qwen", .version = "1.0.0", .summary = "Qwen 2, 2.5 and 3"}))
