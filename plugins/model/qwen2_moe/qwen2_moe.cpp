// qwen2_moe - Qwen 1.5's and 2's mixtures of experts: Qwen 2's attention; most layers' MLP is a mixture and a shared
// expert that every token goes through, times the sigmoid of a gate; some may be dense.
#include "patchbay/sdk/experts.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Qwen2Moe : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen2MoeForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kQwen2MoeTables}};
    static constexpr const char* kNeeds[] = {"top_k", "expert_linear", "weighted_sum", "sigmoid_mul", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kQwen2MoeTables);
        shape = patchbay::decoder_shape(config, {.positions = kPositions});
        read_experts(config);
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        const bool slides = config.get<bool>("use_sliding_window", false);
        const uint32_t window = slides ? patchbay::sliding_window(config, 4096) : 0,
                       first_full = config.integer("max_window_layers", 0, 1 << 20, 28);
        // As transformers 5 does: every other one of the first layers. Qwen 2's dense models slide from there on.
        windows_ = patchbay::layer_windows(config, shape.layers, window,
                                           [&](uint32_t i) { return window > 0 && i % 2 == 0 && i < first_full; });

        ends = patchbay::DecoderEnds::list(weights, config, shape);
        const patchbay::RopeSettings rope = patchbay::rope_settings(config, {.positions_if_missing = kPositions});
        rotary = patchbay::Rotary::list(weights, shape, rope, shape.head_dim);
        const bool bias = config.get<bool>("qkv_bias", true);
        const std::vector<bool> dense = patchbay::dense_layers(config, shape.layers);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", mlp = name + "mlp.";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {.qkv = bias});
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            Mixture& m = mixtures_.emplace_back();
            if (dense[i]) {
                l.mlp = patchbay::MlpWeights::list(weights, shape, mlp);
                continue;
            }
            m.experts = patchbay::ExpertWeights::list(weights, experts_, shape.hidden,
                                                      {mlp, "gate", "gate_proj", "up_proj", "down_proj"});
            m.shared = patchbay::MlpWeights::list(weights, shared_, mlp + "shared_expert.");
            m.gate = weights.router(shape.hidden, {mlp + "shared_expert_gate", 1});
        }
        return ends.facts(shape);
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return shape.kv(windows_[layer], shape.usual_scale()); }

    void forward(const Forward& f) const {
        const patchbay::ExpertTensors mixture(f, experts_, shape);
        const patchbay::GatedMlp dense(f, shape), shared(f, shared_);
        const pb_tensor gate = f.temp({f.tokens(), 1}), together = f.temp({f.tokens(), shape.hidden});
        run(f, [&](uint32_t i, const patchbay::Stream& stream) {
            if (layers[i].mlp.gate_up) return dense.run(f, layers[i].mlp, stream);
            const Mixture& m = mixtures_[i];
            patchbay::Stream apart = stream;
            apart.y = together;
            mixture.run(f, experts_, m.experts, apart);
            shared.run(f, m.shared, stream);
            f.linear(gate, stream.h, m.gate);
            f.sigmoid_mul(stream.y, gate);
            f.add(stream.y, together);
        });
    }

  private:
    static constexpr uint32_t kPositions = 32768; // where config.json does not say
    struct Mixture { // indices of weights
        patchbay::ExpertWeights experts;
        patchbay::MlpWeights shared;
        uint32_t gate = 0;
    };

    void read_experts(const patchbay::ModelConfig& config) {
        experts_ = patchbay::expert_shape(config, 60, 4);
        experts_.inner = config.integer("moe_intermediate_size", 1, 1 << 20, 1408);
        experts_.weights =
            config.get<bool>("norm_topk_prob", false) ? patchbay::TopK::kSumsToOne : patchbay::TopK::kAsProbabilities;
        shared_ = shape;
        shared_.inner = config.integer("shared_expert_intermediate_size", 1, 1 << 20, 5632);
        patchbay::check_deals(
            {{"moe_intermediate_size", experts_.inner}, {"shared_expert_intermediate_size", shared_.inner}},
            shape.ranks);
    }

    patchbay::ExpertShape experts_;
    patchbay::DecoderShape shared_;   // `inner` of the shared expert
    std::vector<uint32_t> windows_;   // by layer
    std::vector<Mixture> mixtures_;   // likewise
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Qwen2Moe>(
    {.name = "qwen2_moe", .version = "1.0.0", .summary = "Qwen 1.5's and 2's mixtures of experts"}))
