// mixtral - Mixtral: Mistral's attention, and in each layer a mixture of experts for an MLP.
#include "patchbay/sdk/experts.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Mixtral : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"MixtralForCausalLM", nullptr};
    static constexpr const auto& kNeeds = patchbay::kExpertOps;

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kMixtralTables);
        s_ = patchbay::decoder_shape(config, {.positions = kPositions});
        e_ = patchbay::expert_shape(config, 8, 2);
        e_.inner = s_.inner;
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        window_ = patchbay::sliding_window(config, 0);
        config.one_of("hidden_act", {"silu"});

        ends_ = patchbay::DecoderEnds::list(weights, config, s_);
        rotary_ = patchbay::Rotary::list(weights, s_, patchbay::rope_settings(config, {.theta_if_missing = 1e6,
                                                                          .positions_if_missing = kPositions}),
                                         s_.head_dim);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers_.emplace_back();
            l.norm = weights.vector(s_.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, s_, name + "self_attn.");
            l.mlp_norm = weights.vector(s_.hidden, name + "post_attention_layernorm.weight");
            l.experts = patchbay::ExpertWeights::list(weights, e_, s_.hidden,
                                                      {name + "block_sparse_moe.", "gate", "w1", "w3", "w2"});
        }
        return ends_.facts(s_);
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(window_, s_.usual_scale()); }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, s_);
        const patchbay::RotaryAttention attention(f, s_);
        const patchbay::ExpertTensors experts(f, e_, s_);
        f.embedding(stream.x, ends_.embedding);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            stream.enter_layer(f, i, l.norm, eps_);
            attention.run(f, i, l.attention, rotary_, stream, eps_);
            stream.enter_block(f, l.mlp_norm, eps_);
            experts.run(f, e_, l.experts, stream);
        }
        ends_.logits(f, s_, stream, eps_);
    }

  private:
    static constexpr uint32_t kPositions = 1 << 17; // where config.json does not say
    struct Layer { // norm, mlp_norm: indices of weights
        uint32_t norm = 0, mlp_norm = 0;
        patchbay::AttentionWeights attention;
        patchbay::ExpertWeights experts;
    };
    patchbay::DecoderShape s_;
    patchbay::ExpertShape e_;
    float eps_ = 0;
    uint32_t window_ = 0;
    patchbay::DecoderEnds ends_;
    patchbay::Rotary rotary_;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Mixtral>({.name = "mixtral", .version = "1.0.0", .summary = "Mixtral, a mixture of experts"}))
