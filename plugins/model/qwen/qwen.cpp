// qwen - Qwen 2, 2.5 and 3: Llama's layers with a bias on q, k and v (2), or with each head of q and k normed (3).
#include "patchbay/sdk/decoder_blocks.hpp"

#include "keys.hpp"

namespace {

class Qwen : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen2ForCausalLM", "Qwen3ForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {
        {kArchitectures[0], patchbay::config_keys::kQwen2Tables},
        {kArchitectures[1], patchbay::config_keys::kQwen3Tables},
    };

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const bool qwen3 =
            config.one_of("architectures.0", {kArchitectures[0], kArchitectures[1]}) == kArchitectures[1];
        patchbay::check_keys(config, qwen3 ? patchbay::config_keys::kQwen3Tables
                                           : patchbay::config_keys::kQwen2Tables);
        shape = patchbay::decoder_shape(config, {.head_dim = qwen3 ? 128u : 0, .positions = kPositions});
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        const bool windows = config.get<bool>("use_sliding_window", false);
        const uint32_t full_layers = config.integer("max_window_layers", 0, 1 << 20, 28);
        const uint32_t window = windows ? patchbay::sliding_window(config, 4096) : 0;
        windows_ = patchbay::layer_windows(config, shape.layers, window,
                                           [&](uint32_t layer) { return window > 0 && layer >= full_layers; });

        const bool bias = qwen3 ? config.get<bool>("attention_bias", false) : true;
        ends = patchbay::DecoderEnds::list(weights, config, shape);
        const patchbay::RopeSettings rope = patchbay::rope_settings(config, {.positions_if_missing = kPositions});
        rotary = patchbay::Rotary::list(weights, shape, rope, shape.head_dim);
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
    static constexpr uint32_t kPositions = 32768; // where config.json does not say
    std::vector<uint32_t> windows_; // by layer
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Qwen>({.name = "qwen", .version = "1.0.0", .summary = "Qwen 2, 2.5 and 3"}))
