// smollm3 - SmolLM3: Llama's layers, of which some do not turn q and k.
#include "patchbay/sdk/decoder_blocks.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class SmolLm3 : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"SmolLM3ForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kSmolLm3Tables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kSmolLm3Tables);
        shape = patchbay::decoder_shape(config, {.positions = kPositions});
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        read_layers(config);
        const bool bias = config.get<bool>("attention_bias", false), mlp_bias = config.get<bool>("mlp_bias", false);
        ends = patchbay::DecoderEnds::list(weights, config, shape, {.usually_tied = true});
        rotary = patchbay::Rotary::list(
            weights, shape,
            patchbay::rope_settings(config, {.theta_if_missing = 2e6, .positions_if_missing = kPositions}),
            shape.head_dim);
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

    pb_kv_spec kv_spec(uint32_t layer) const { return shape.kv(windows_[layer], shape.usual_scale()); }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, shape);
        const patchbay::RotaryAttention attention(f, shape);
        const patchbay::GatedMlp mlp(f, shape);
        f.embedding(stream.x, ends.embedding);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const Layer& l = layers[i];
            stream.enter_layer(f, i, l.norm, eps);
            if (turns_[i]) attention.run(f, i, l.attention, rotary, stream, eps);
            else attention.run_in_place(f, i, l.attention, stream);
            stream.enter_block(f, l.mlp_norm, eps);
            mlp.run(f, l.mlp, stream);
        }
        ends.logits(f, shape, stream, eps);
    }

  private:
    static constexpr uint32_t kPositions = 32768; // where config.json does not say

    // no_rope_layers has a 1 for each layer that turns; without it one of `interval` does not.
    void read_layers(const patchbay::ModelConfig& config) {
        const uint32_t interval = config.integer("no_rope_layer_interval", 1, 1024, 4);
        const bool listed = config.has_section("no_rope_layers");
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string key = "no_rope_layers." + std::to_string(i);
            turns_.push_back(listed ? config.integer(key, 0, 1) == 1 : (i + 1) % interval != 0);
        }
        const bool slides = config.get<bool>("use_sliding_window", false);
        const uint32_t window = slides ? patchbay::sliding_window(config, 0) : 0;
        windows_ = patchbay::layer_windows(config, shape.layers, window,
                                           [&](uint32_t i) { return window > 0 && !turns_[i]; });
    }

    std::vector<bool> turns_; // by layer
    std::vector<uint32_t> windows_; // likewise
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<SmolLm3>({.name = "smollm3", .version = "1.0.0", .summary = "SmolLM3"}))
