// granite - Granite 3, dense: Llama's layers, with factors on the embeddings, on what each block adds, on scores and
// on logits.
#include "patchbay/sdk/decoder_blocks.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Granite : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"GraniteForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kGraniteTables}};
    static constexpr const char* kNeeds[] = {"scale", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kGraniteTables);
        shape = patchbay::decoder_shape(config, {.positions = 2048});
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        embedding_ = config.get<float>("embedding_multiplier", 1);
        residual_ = config.get<float>("residual_multiplier", 1);
        scores_ = factor(config, "attention_multiplier");
        logits_ = factor(config, "logits_scaling");

        const bool bias = config.get<bool>("attention_bias", false), mlp_bias = config.get<bool>("mlp_bias", false);
        ends = patchbay::DecoderEnds::list(weights, config, shape);
        rotary = patchbay::Rotary::list(weights, shape, patchbay::rope_settings(config, {.positions_if_missing = 2048}),
                                        shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {bias, bias});
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.", mlp_bias);
        }
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return shape.kv(0, scores_); }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, shape);
        const patchbay::RotaryAttention attention(f, shape);
        const patchbay::GatedMlp mlp(f, shape);
        f.embedding(stream.x, ends.embedding);
        f.scale(stream.x, embedding_);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const Layer& l = layers[i];
            stream.enter_layer(f, i, l.norm, eps);
            attention.run(f, i, l.attention, rotary, stream, eps);
            f.scale(stream.y, residual_);
            stream.enter_block(f, l.mlp_norm, eps);
            mlp.run(f, l.mlp, stream);
            f.scale(stream.y, residual_);
        }
        ends.logits(f, shape, stream, eps);
        if (f.raw.logit_rows.shape[0] > 0) f.scale(f.raw.logits, 1 / logits_);
    }

  private:
    static float factor(const patchbay::ModelConfig& config, const char* key) {
        const float value = config.get<float>(key, 1);
        if (!(value > 0 && value < 1e9f))
            throw patchbay::Error(PB_INVALID,
                                  std::string(key) + " is " + std::to_string(value) + ", expected more than 0");
        return value;
    }

    float embedding_ = 1, residual_ = 1, scores_ = 1, logits_ = 1;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Granite>({.name = "granite", .version = "1.0.0", .summary = "Granite 3, dense"}))
