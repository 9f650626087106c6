// mixtral - Mixtral: Mistral's attention, and in each layer a mixture of experts for an MLP.
#include "patchbay/sdk/experts.hpp"
#include "patchbay/sdk/rope.hpp"

namespace {

using patchbay::Forward;

class Mixtral : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"MixtralForCausalLM", nullptr};
    static constexpr const auto& kNeeds = patchbay::kExpertOps;

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        s_ = patchbay::decoder_shape(config);
        e_ = patchbay::expert_shape(config, "num_local_experts", 8, 2);
        e_.inner = s_.inner;
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        window_ = config.get_or_none<uint32_t>("sliding_window", 0);
        config.one_of("hidden_act", {"silu"});
        const patchbay::RopeSettings rope = patchbay::rope_settings(config, {.theta_if_missing = 1e6});
        rope_scale_ = rope.cos_scale;
        s_.positions = std::min(s_.positions, rope.most_positions);

        const int64_t hidden = s_.hidden, q = s_.q_size(), kv = s_.kv_size(), d = s_.head_dim;
        embedding_ = weights.embedding({"model.embed_tokens", s_.vocab}, hidden);
        rope_ = weights.computed(patchbay::rope_frequencies(rope, s_.head_dim));
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", attention = name + "self_attn.";
            Layer& l = layers_.emplace_back();
            l.norm = weights.vector(hidden, name + "input_layernorm.weight");
            l.qkv = weights.linear(PB_SHARD_ROWS, hidden,
                                   {{attention + "q_proj", q, false, d},
                                    {attention + "k_proj", kv, false, d},
                                    {attention + "v_proj", kv, false, d}});
            l.out = weights.linear(PB_SHARD_COLS, q, {{attention + "o_proj", hidden, false, d}});
            l.mlp_norm = weights.vector(hidden, name + "post_attention_layernorm.weight");
            l.experts = patchbay::ExpertWeights::list(weights, e_, hidden,
                                                      {name + "block_sparse_moe.", "gate", "w1", "w3", "w2"});
        }
        norm_ = weights.vector(hidden, "model.norm.weight");
        head_ = config.get<bool>("tie_word_embeddings", false)
                    ? weights.tied(embedding_)
                    : weights.linear(PB_SHARD_NONE, hidden, {{"lm_head", s_.vocab}});
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(window_, s_.usual_scale()); }

    void forward(const Forward& f) const {
        const int64_t t = f.tokens();
        const pb_tensor x = f.temp({t, s_.hidden}), h = f.temp({t, s_.hidden}), y = f.temp({t, s_.hidden});
        const patchbay::AttentionTensors a(f, s_);
        const patchbay::ExpertTensors experts(f, e_, s_);

        f.embedding(x, embedding_);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            if (i == 0) f.rms_norm(h, x, l.norm, eps_);
            else f.add_rms_norm(h, x, y, l.norm, eps_);
            f.linear(a.qkv, h, l.qkv);
            f.rope(a.q, rope_, rope_scale_);
            f.rope(a.k, rope_, rope_scale_);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(y, a.out_rows, l.out);
            f.all_reduce(y);
            f.add_rms_norm(h, x, y, l.mlp_norm, eps_);
            experts.run(f, e_, l.experts, y, h);
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
        uint32_t norm = 0, qkv = 0, out = 0, mlp_norm = 0;
        patchbay::ExpertWeights experts;
    };
    patchbay::DecoderShape s_;
    patchbay::ExpertShape e_;
    float eps_ = 0, rope_scale_ = 1;
    uint32_t window_ = 0, embedding_ = 0, rope_ = 0, norm_ = 0, head_ = 0;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<Mixtral>({.name = "mixtral", .version = "1.0.0", .summary = "Mixtral, a mixture of experts"}))
