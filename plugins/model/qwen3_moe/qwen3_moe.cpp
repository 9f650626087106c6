// qwen3_moe - Qwen 3's mixtures of experts: Qwen 3's attention; most layers' MLP is a mixture, some may be dense.
#include "patchbay/sdk/experts.hpp"

#include "keys.hpp"

namespace {

class Qwen3Moe : public patchbay::ExpertDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen3MoeForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kQwen3MoeTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kQwen3MoeTables);
        shape = patchbay::decoder_shape(config, {.positions = kPositions});
        experts = patchbay::expert_shape(config, 128, 8);
        experts.inner = config.integer("moe_intermediate_size", 1, 1 << 20, 768);
        experts.weights =
            config.get<bool>("norm_topk_prob", false) ? patchbay::TopK::kSumsToOne : patchbay::TopK::kAsProbabilities;
        patchbay::check_deals({{"moe_intermediate_size", experts.inner}}, shape.ranks);
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        window = config.get<bool>("use_sliding_window", false) ? patchbay::sliding_window(config, 4096) : 0;
        config.one_of("hidden_act", {"silu"});

        ends = patchbay::DecoderEnds::list(weights, config, shape);
        const patchbay::RopeSettings rope = patchbay::rope_settings(config, {.positions_if_missing = kPositions});
        rotary = patchbay::Rotary::list(weights, shape, rope, shape.head_dim);
        const bool bias = config.get<bool>("attention_bias", false);
        const std::vector<bool> dense = patchbay::dense_layers(config, shape.layers);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", attention = name + "self_attn.",
                              mlp = name + "mlp.";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, attention, {bias, bias});
            l.attention.list_head_norms(weights, shape, attention);
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            patchbay::ExpertWeights& mixture = mixtures.emplace_back();
            if (dense[i]) l.mlp = patchbay::MlpWeights::list(weights, shape, mlp);
            else
                mixture = patchbay::ExpertWeights::list(weights, experts, shape.hidden,
                                                        {mlp, "gate", "gate_proj", "up_proj", "down_proj"});
        }
        return ends.facts(shape);
    }

  private:
    static constexpr uint32_t kPositions = 32768; // where config.json does not say
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Qwen3Moe>({.name = "qwen3_moe", .version = "1.0.0", .summary = "Qwen 3's mixtures of experts"}))
