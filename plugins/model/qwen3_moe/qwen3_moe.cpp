// qwen3_moe - Qwen 3's mixtures of experts: Qwen 3's attention; most layers' MLP is a mixture, some may be dense.
#include "patchbay/sdk/experts.hpp"
#include "patchbay/sdk/rope.hpp"

namespace {

using patchbay::Forward;

class Qwen3Moe : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen3MoeForCausalLM", nullptr};
    static constexpr const auto& kNeeds = patchbay::kExpertOps;

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        s_ = patchbay::decoder_shape(config);
        e_ = patchbay::expert_shape(config, "num_experts", 128, 8);
        e_.inner = config.integer("moe_intermediate_size", 1, 1 << 20, 768);
        e_.weights =
            config.get<bool>("norm_topk_prob", false) ? patchbay::TopK::kSumsToOne : patchbay::TopK::kAsProbabilities;
        if (e_.inner % s_.ranks != 0)
            throw patchbay::Error(PB_UNSUPPORTED,
                                  "moe_intermediate_size does not divide among " + std::to_string(s_.ranks) + " ranks");
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        window_ =
            config.get<bool>("use_sliding_window", false) ? config.get_or_none<uint32_t>("sliding_window", 4096) : 0;
        config.one_of("hidden_act", {"silu"});
        const patchbay::RopeSettings rope = patchbay::rope_settings(config);
        rope_scale_ = rope.cos_scale;
        s_.positions = std::min(s_.positions, rope.most_positions);

        embedding_ = weights.embedding({"model.embed_tokens", s_.vocab}, s_.hidden);
        rope_ = weights.computed(patchbay::rope_frequencies(rope, s_.head_dim));
        const std::vector<bool> dense = dense_layers(config);
        for (uint32_t i = 0; i < s_.layers; ++i)
            layers_.push_back(layer(config, "model.layers." + std::to_string(i) + ".", dense[i]));
        norm_ = weights.vector(s_.hidden, "model.norm.weight");
        head_ = config.get<bool>("tie_word_embeddings", false)
                    ? weights.tied(embedding_)
                    : weights.linear(PB_SHARD_NONE, s_.hidden, {{"lm_head", s_.vocab}});
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(window_, s_.usual_scale()); }

    void forward(const Forward& f) const {
        const int64_t t = f.tokens(), inner = s_.inner / s_.ranks;
        const pb_tensor x = f.temp({t, s_.hidden}), h = f.temp({t, s_.hidden}), y = f.temp({t, s_.hidden});
        const patchbay::AttentionTensors a(f, s_);
        const patchbay::ExpertTensors experts(f, e_, s_);
        const pb_tensor gate_up = f.temp({t, 2 * inner}), gated = f.temp({t, inner}); // of dense layers

        f.embedding(x, embedding_);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            if (i == 0) f.rms_norm(h, x, l.norm, eps_);
            else f.add_rms_norm(h, x, y, l.norm, eps_);
            f.linear(a.qkv, h, l.qkv);
            f.rms_norm(a.q, a.q, l.q_norm, eps_);
            f.rms_norm(a.k, a.k, l.k_norm, eps_);
            f.rope(a.q, rope_, rope_scale_);
            f.rope(a.k, rope_, rope_scale_);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(y, a.out_rows, l.out);
            f.all_reduce(y);
            f.add_rms_norm(h, x, y, l.mlp_norm, eps_);
            if (l.gate_up) {
                f.linear(gate_up, h, l.gate_up);
                f.silu_mul(gated, gate_up);
                f.linear(y, gated, l.down);
            } else {
                experts.run(f, e_, l.experts, y, h);
            }
            f.all_reduce(y);
        }
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        f.add(x, y);
        const pb_tensor last = f.temp({rows, s_.hidden}), normed = f.temp({rows, s_.hidden});
        f.gather_rows(last, x, f.raw.logit_rows);
        f.rms_norm(normed, last, norm_, eps_);
        f.linear(f.raw.logits, normed, head_);
    }

  private:
    struct Layer { // indices of weights
        uint32_t norm = 0, qkv = 0, q_norm = 0, k_norm = 0, out = 0, mlp_norm = 0;
        uint32_t gate_up = 0, down = 0; // of a dense layer; 0: it has experts
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
        const int64_t hidden = s_.hidden, q = s_.q_size(), kv = s_.kv_size(), d = s_.head_dim;
        const std::string attention = name + "self_attn.", mlp = name + "mlp.";
        Layer l;
        l.norm = weights.vector(hidden, name + "input_layernorm.weight");
        l.qkv = weights.linear(PB_SHARD_ROWS, hidden,
                               {{attention + "q_proj", q, bias, d},
                                {attention + "k_proj", kv, bias, d},
                                {attention + "v_proj", kv, bias, d}});
        l.q_norm = weights.vector(d, attention + "q_norm.weight");
        l.k_norm = weights.vector(d, attention + "k_norm.weight");
        l.out = weights.linear(PB_SHARD_COLS, q, {{attention + "o_proj", hidden, bias, d}});
        l.mlp_norm = weights.vector(hidden, name + "post_attention_layernorm.weight");
        if (dense) {
            l.gate_up =
                weights.linear(PB_SHARD_ROWS, hidden, {{mlp + "gate_proj", s_.inner}, {mlp + "up_proj", s_.inner}});
            l.down = weights.linear(PB_SHARD_COLS, s_.inner, {{mlp + "down_proj", hidden}});
        } else {
            l.experts =
                patchbay::ExpertWeights::list(weights, e_, hidden, {mlp, "gate", "gate_proj", "up_proj", "down_proj"});
        }
        return l;
    }

    patchbay::DecoderShape s_;
    patchbay::ExpertShape e_;
    float eps_ = 0, rope_scale_ = 1;
    uint32_t window_ = 0, embedding_ = 0, rope_ = 0, norm_ = 0, head_ = 0;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Qwen3Moe>({.name = "qwen3_moe", .version = "1.0.0", .summary = "Qwen 3's mixtures of experts"}))
