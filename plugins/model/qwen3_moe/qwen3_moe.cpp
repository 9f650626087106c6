// qwen3_moe - Qwen 3's mixtures of experts: Qwen 3's attention; most layers' MLP is a mixture, some may be dense.
#include "patchbay/sdk/experts.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Qwen3Moe : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen3MoeForCausalLM", nullptr};
    static constexpr const auto& kNeeds = patchbay::kExpertOps;

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kQwen3MoeTables);
        s_ = patchbay::decoder_shape(config, {.positions = kPositions});
        e_ = patchbay::expert_shape(config, 128, 8);
        e_.inner = config.integer("moe_intermediate_size", 1, 1 << 20, 768);
        e_.weights =
            config.get<bool>("norm_topk_prob", false) ? patchbay::TopK::kSumsToOne : patchbay::TopK::kAsProbabilities;
        patchbay::check_deals({{"moe_intermediate_size", e_.inner}}, s_.ranks);
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        window_ = config.get<bool>("use_sliding_window", false) ? patchbay::sliding_window(config, 4096) : 0;
        config.one_of("hidden_act", {"silu"});

        ends_ = patchbay::DecoderEnds::list(weights, config, s_);
        const patchbay::RopeSettings rope = patchbay::rope_settings(config, {.positions_if_missing = kPositions});
        rotary_ = patchbay::Rotary::list(weights, s_, rope, s_.head_dim);
        const std::vector<bool> dense = dense_layers(config);
        for (uint32_t i = 0; i < s_.layers; ++i)
            layers_.push_back(layer(config, "model.layers." + std::to_string(i) + ".", dense[i]));
        return ends_.facts(s_);
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(window_, s_.usual_scale()); }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, s_);
        const patchbay::RotaryAttention attention(f, s_);
        const patchbay::ExpertTensors experts(f, e_, s_);
        const patchbay::GatedMlp mlp(f, s_);
        f.embedding(stream.x, ends_.embedding);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            stream.enter_layer(f, i, l.norm, eps_);
            attention.run(f, i, l.attention, rotary_, stream, eps_);
            stream.enter_block(f, l.mlp_norm, eps_);
            if (l.mlp.gate_up) mlp.run(f, l.mlp, stream);
            else experts.run(f, e_, l.experts, stream);
        }
        ends_.logits(f, s_, stream, eps_);
    }

  private:
    static constexpr uint32_t kPositions = 32768; // where config.json does not say
    struct Layer { // norm, mlp_norm: indices of weights
        uint32_t norm = 0, mlp_norm = 0;
        patchbay::AttentionWeights attention;
        patchbay::MlpWeights mlp; // of a dense layer; gate_up 0: it has experts
        patchbay::ExpertWeights experts;
    };

    std::vector<bool> dense_layers(const patchbay::ModelConfig& config) const {
        const uint32_t step = config.integer("decoder_sparse_step", 1, 1024, 1);
        std::vector<bool> out;
        for (uint32_t i = 0; i < s_.layers; ++i) out.push_back((i + 1) % step != 0);
        std::string key;
        for (uint32_t n = 0; config.find(key = "mlp_only_layers." + std::to_string(n)); ++n)
            out[config.integer(key, 0, s_.layers - 1)] = true;
        return out;
    }

    Layer layer(const patchbay::ModelConfig& config, const std::string& name, bool dense) {
        const bool bias = config.get<bool>("attention_bias", false);
        const std::string attention = name + "self_attn.", mlp = name + "mlp.";
        Layer l;
        l.norm = weights.vector(s_.hidden, name + "input_layernorm.weight");
        l.attention = patchbay::AttentionWeights::list(weights, s_, attention, {bias, bias});
        l.attention.list_head_norms(weights, s_, attention);
        l.mlp_norm = weights.vector(s_.hidden, name + "post_attention_layernorm.weight");
        if (dense) l.mlp = patchbay::MlpWeights::list(weights, s_, mlp);
        else
            l.experts = patchbay::ExpertWeights::list(weights, e_, s_.hidden,
                                                      {mlp, "gate", "gate_proj", "up_proj", "down_proj"});
        return l;
    }

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
    patchbay::model<Qwen3Moe>({.name = "qwen3_moe", .version = "1.0.0", .summary = "Qwen 3's mixtures of experts"}))
