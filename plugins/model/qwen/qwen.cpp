// qwen - Qwen 2, 2.5 and 3: Llama's layers with a bias on q, k and v (2), or with each head of q and k normed (3).
#include "patchbay/sdk/decoder.hpp"
#include "patchbay/sdk/rope.hpp"
#include "patchbay/sdk/weight_list.hpp"

namespace {

using patchbay::Forward;

class Qwen : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"Qwen2ForCausalLM", "Qwen3ForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const bool qwen3 =
            config.one_of("architectures.0", {kArchitectures[0], kArchitectures[1]}) == kArchitectures[1];
        s_ = patchbay::decoder_shape(config, qwen3 ? 128 : 0);
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        const bool windows = config.get<bool>("use_sliding_window", false);
        const uint32_t full_layers = config.integer("max_window_layers", 0, 1 << 20, 28);
        windows_ =
            patchbay::layer_windows(config, s_.layers, windows ? config.integer("sliding_window", 0, 1 << 26, 4096) : 0,
                                    [&](uint32_t layer) { return windows && layer >= full_layers; });
        const patchbay::RopeSettings rope = patchbay::rope_settings(config);
        rope_scale_ = rope.cos_scale;
        s_.positions = std::min(s_.positions, rope.most_positions);

        const bool bias = qwen3 ? config.get<bool>("attention_bias", false) : true, out_bias = qwen3 && bias;
        const int64_t hidden = s_.hidden, q = s_.q_size(), kv = s_.kv_size(), d = s_.head_dim;
        embedding_ = weights.embedding({"model.embed_tokens", s_.vocab}, hidden);
        rope_ = weights.computed(patchbay::rope_frequencies(rope, s_.head_dim));
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", attention = name + "self_attn.",
                              mlp = name + "mlp.";
            Layer& l = layers_.emplace_back();
            l.norm = weights.vector(hidden, name + "input_layernorm.weight");
            l.qkv = weights.linear(PB_SHARD_ROWS, hidden, {{attention + "q_proj", q, bias, d},
                                                           {attention + "k_proj", kv, bias, d},
                                                           {attention + "v_proj", kv, bias, d}});
            if (qwen3) l.q_norm = weights.vector(d, attention + "q_norm.weight");
            if (qwen3) l.k_norm = weights.vector(d, attention + "k_norm.weight");
            l.out = weights.linear(PB_SHARD_COLS, q, {{attention + "o_proj", hidden, out_bias, d}});
            l.mlp_norm = weights.vector(hidden, name + "post_attention_layernorm.weight");
            l.gate_up =
                weights.linear(PB_SHARD_ROWS, hidden, {{mlp + "gate_proj", s_.inner}, {mlp + "up_proj", s_.inner}});
            l.down = weights.linear(PB_SHARD_COLS, s_.inner, {{mlp + "down_proj", hidden}});
        }
        norm_ = weights.vector(hidden, "model.norm.weight");
        head_ = config.get<bool>("tie_word_embeddings", false)
                    ? weights.tied(embedding_)
                    : weights.linear(PB_SHARD_NONE, hidden, {{"lm_head", s_.vocab}});
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return s_.kv(windows_[layer], s_.usual_scale()); }

    void forward(const Forward& f) const {
        const int64_t t = f.tokens(), inner = s_.inner / s_.ranks;
        const pb_tensor x = f.temp({t, s_.hidden}), h = f.temp({t, s_.hidden}), y = f.temp({t, s_.hidden});
        const patchbay::AttentionTensors a(f, s_);
        const pb_tensor gate_up = f.temp({t, 2 * inner}), gated = f.temp({t, inner});

        f.embedding(x, embedding_);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            if (i == 0) f.rms_norm(h, x, l.norm, eps_);
            else f.add_rms_norm(h, x, y, l.norm, eps_);
            f.linear(a.qkv, h, l.qkv);
            if (l.q_norm) f.rms_norm(a.q, a.q, l.q_norm, eps_);
            if (l.k_norm) f.rms_norm(a.k, a.k, l.k_norm, eps_);
            f.rope(a.q, rope_, rope_scale_);
            f.rope(a.k, rope_, rope_scale_);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(y, a.out_rows, l.out);
            f.all_reduce(y);
            f.add_rms_norm(h, x, y, l.mlp_norm, eps_);
            f.linear(gate_up, h, l.gate_up);
            f.silu_mul(gated, gate_up);
            f.linear(y, gated, l.down);
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
    struct Layer { // indices of weights; 0: none
        uint32_t norm = 0, qkv = 0, q_norm = 0, k_norm = 0, out = 0, mlp_norm = 0, gate_up = 0, down = 0;
    };
    patchbay::DecoderShape s_;
    float eps_ = 0, rope_scale_ = 1;
    uint32_t embedding_ = 0, rope_ = 0, norm_ = 0, head_ = 0;
    std::vector<uint32_t> windows_; // by layer
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Qwen>({.name = "qwen", .version = "1.0.0", .summary = "Qwen 2, 2.5 and 3"}))
