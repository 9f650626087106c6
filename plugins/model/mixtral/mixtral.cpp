// mixtral - Mixtral: Mistral's attention, and in each layer a mixture of experts for an MLP.
#include "patchbay/sdk/experts.hpp"

#include "keys.hpp"

namespace {

class Mixtral : public patchbay::ExpertDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"MixtralForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kMixtralTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kMixtralTables);
        shape = patchbay::decoder_shape(config, {.positions = kPositions});
        experts = patchbay::expert_shape(config, 8, 2);
        experts.inner = shape.inner;
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        window = patchbay::sliding_window(config, 0);
        config.one_of("hidden_act", {"silu"});

        ends = patchbay::DecoderEnds::list(weights, config, shape);
        const patchbay::RopeSettings rope =
            patchbay::rope_settings(config, {.theta_if_missing = 1e6, .positions_if_missing = kPositions});
        rotary = patchbay::Rotary::list(weights, shape, rope, shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.");
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            mixtures.push_back(patchbay::ExpertWeights::list(
                weights, experts, shape.hidden, {name + "block_sparse_moe.", "gate", "w1", "w3", "w2"}));
        }
        return ends.facts(shape);
    }

  private:
    static constexpr uint32_t kPositions = 1 << 17; // where config.json does not say
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Mixtral>({.name = "mixtral", .version = "1.0.0", .summary = "Mixtral, a mixture of experts"}))
