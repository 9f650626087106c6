// starcoder2 - StarCoder 2: LayerNorm, grouped queries, rotary positions, a window, an MLP without a gate, biases.
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

class StarCoder2 : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"Starcoder2ForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kStarCoder2Tables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kStarCoder2Tables);
        shape = patchbay::decoder_shape(config, {.positions = 4096});
        eps = patchbay::norm_epsilon(config, "norm_epsilon", 1e-5f);
        act = patchbay::activation(config, "hidden_act", patchbay::Activation::kGeluTanh);
        window_ = patchbay::sliding_window(config, 0);
        const bool bias = config.get<bool>("use_bias", true);

        const int64_t hidden = shape.hidden;
        embedding = weights.embedding({"model.embed_tokens", shape.vocab}, hidden);
        list_rotary(patchbay::rope_settings(config, {.positions_if_missing = 4096}));
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + "input_layernorm");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {bias, bias});
            l.mlp_norm = list_norm(name + "post_attention_layernorm");
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {{name + "mlp.c_fc", shape.inner, bias}});
            l.down = weights.linear(PB_SHARD_COLS, shape.inner, {{name + "mlp.c_proj", hidden, bias}});
        }
        norm = list_norm("model.norm");
        list_head(config, "model.embed_tokens");
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return kv(window_, shape.usual_scale()); }

  private:
    uint32_t window_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<StarCoder2>({.name = "starcoder2", .version = "1.0.0", .summary = "StarCoder 2"}))
