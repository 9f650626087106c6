// cohere - Command R and R7B: LayerNorm without biases, attention and MLP on the same input, rotary positions of
// neighbouring elements, scaled logits; the second generation slides in most layers and turns only in these.
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

class Cohere : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"CohereForCausalLM", "Cohere2ForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {
        {kArchitectures[0], patchbay::config_keys::kCohereTables},
        {kArchitectures[1], patchbay::config_keys::kCohere2Tables},
    };

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const bool second =
            config.one_of("architectures.0", {kArchitectures[0], kArchitectures[1]}) == kArchitectures[1];
        if (second) patchbay::check_keys(config, patchbay::config_keys::kCohere2Tables);
        else patchbay::check_keys(config, patchbay::config_keys::kCohereTables);
        shape = patchbay::decoder_shape(config, {.positions = 8192});
        eps = patchbay::norm_epsilon(config, "layer_norm_eps", 1e-5f);
        config.one_of("hidden_act", {"silu"});
        logit_scale = config.get<float>("logit_scale", 0.0625f);
        order = Order::kParallel;
        const uint32_t window = second ? patchbay::sliding_window(config, 4096) : 0,
                       pattern = second ? config.integer("sliding_window_pattern", 1, 1024, 4) : 1;
        windows_ = patchbay::layer_windows(config, shape.layers, window,
                                           [&](uint32_t i) { return second && (i + 1) % pattern != 0; });
        const bool bias = config.get<bool>("attention_bias", false);

        embedding = weights.embedding({"model.embed_tokens", shape.vocab}, shape.hidden);
        const patchbay::RopeSettings rope = patchbay::rope_settings(config, {.theta_if_missing = second ? 1e4 : 5e5,
                                                                             .positions_if_missing = 8192});
        if (rope.scaling == patchbay::RopeScaling::kNone) // Command R's max_position_embeddings is too small
            shape.positions = std::max(shape.positions,
                                       config.integer("model_max_length", 1, 1 << 26, shape.positions));
        list_rotary(rope);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + "input_layernorm", Bias::kNone);
            l.attention = list_attention(name + "self_attn.", bias);
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.");
            l.turns = !second || windows_[i] > 0;
        }
        norm = list_norm("model.norm", Bias::kNone);
        list_head(config, "model.embed_tokens");
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return kv(windows_[layer], shape.usual_scale()); }

  private:
    // The model turns the pairs (2·i, 2·i + 1) of a head; with the rows of q and k in this order they are the pairs
    // (i, i + head_dim / 2), and q·k is the same.
    patchbay::AttentionWeights list_attention(const std::string& name, bool bias) {
        const int64_t d = shape.head_dim;
        const auto part = [&](const char* which, int64_t rows, int64_t pairs) {
            return patchbay::LinearPart{.name = name + which, .rows = rows, .bias = bias, .unit = d,
                                        .order = {0, 0, pairs}};
        };
        patchbay::AttentionWeights out;
        out.qkv = weights.linear(PB_SHARD_ROWS, shape.hidden, {part("q_proj", shape.q_size(), d),
                                                               part("k_proj", shape.kv_size(), d),
                                                               part("v_proj", shape.kv_size(), 0)});
        out.out = weights.linear(PB_SHARD_COLS, shape.q_size(), {{name + "o_proj", shape.hidden, bias, d}});
        return out;
    }

    std::vector<uint32_t> windows_; // by layer
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Cohere>({.name = "cohere", .version = "1.0.0", .summary = "Command R and R7B"}))
