// qwen - Qwen 2, 2.5 and 3: Llama's layers with a bias on q, k and v (2), or with each head of q and k normed (3).
#include "patchbay/sdk/decoder_blocks.hpp"

namespace {

class Qwen : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen2ForCausalLM", "Qwen3ForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const bool qwen3 =
            config.one_of("architectures.0", {kArchitectures[0], kArchitectures[1]}) == kArchitectures[1];
        shape = patchbay::decoder_shape(config, qwen3 ? 128 : 0);
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        const bool windows = config.get<bool>("use_sliding_window", false);
        const uint32_t full_layers = config.integer("max_window_layers", 0, 1 << 20, 28);
        const uint32_t window = windows ? config.integer("sliding_window", 0, 1 << 26, 4096) : 0;
        windows_ = patchbay::layer_windows(config, shape.layers, window,
                                           [&](uint32_t layer) { return windows && layer >= full_layers; });

        const bool bias = qwen3 ? config.get<bool>("attention_bias", false) : true;
        ends = patchbay::DecoderEnds::list(weights, config, shape);
        rotary = patchbay::Rotary::list(weights, shape, patchbay::rope_settings(config), shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", attention = name + "self_attn.";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, attention, {bias, qwen3 && bias});
            if (qwen3) l.attention.list_head_norms(weights, shape, attention);
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.");
        }
        return ends.facts(shape);
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return shape.kv(windows_[layer], shape.usual_scale()); }

  private:
    std::vector<uint32_t> windows_; // by layer
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Qwen>({.name = "qwen", .version = "1.0.0", .summary = "Qwen 2, 2.5 and 3"}))
