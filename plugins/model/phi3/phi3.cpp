// phi3 - Phi 3, 3.5 and 4 (mini, medium): Llama's layers, stored with q, k, v in one matrix and gate, up in another;
// rotary positions on a part of each head.
#include "patchbay/sdk/decoder.hpp"
#include "patchbay/sdk/rope.hpp"
#include "patchbay/sdk/weight_list.hpp"

namespace {

using patchbay::Forward;
using patchbay::LinearPart;

class Phi3 : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"Phi3ForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        s_ = patchbay::decoder_shape(config);
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        window_ = config.get_or_none<uint32_t>("sliding_window", 0);
        config.one_of("hidden_act", {"silu"});
        const double turned = config.get<double>("partial_rotary_factor", 1);
        if (!(turned > 0 && turned <= 1)) throw patchbay::Error(PB_INVALID, "partial_rotary_factor is out of range");
        const auto rotary = static_cast<uint32_t>(s_.head_dim * turned);
        if (rotary < 2 || rotary % 2 != 0)
            throw patchbay::Error(PB_UNSUPPORTED, "partial_rotary_factor turns " + std::to_string(rotary) +
                                                      " elements of a head, expected an even number");
        const patchbay::RopeSettings rope = patchbay::rope_settings(config);
        rope_scale_ = rope.cos_scale;
        s_.positions = std::min(s_.positions, rope.most_positions);

        const int64_t hidden = s_.hidden, inner = s_.inner, q = s_.q_size(), kv = s_.kv_size(), d = s_.head_dim,
                      all = q + 2 * kv;
        embedding_ = weights.embedding({"model.embed_tokens", s_.vocab}, hidden);
        rope_ = weights.computed(patchbay::rope_frequencies(rope, rotary));
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", qkv = name + "self_attn.qkv_proj",
                              gate_up = name + "mlp.gate_up_proj";
            Layer& l = layers_.emplace_back();
            l.norm = weights.vector(hidden, name + "input_layernorm.weight");
            l.qkv = weights.linear(PB_SHARD_ROWS, hidden,
                                   {LinearPart{qkv, q, false, d, 0, all}, LinearPart{qkv, kv, false, d, q, all},
                                    LinearPart{qkv, kv, false, d, q + kv, all}});
            l.out = weights.linear(PB_SHARD_COLS, q, {{name + "self_attn.o_proj", hidden, false, d}});
            l.mlp_norm = weights.vector(hidden, name + "post_attention_layernorm.weight");
            l.gate_up = weights.linear(PB_SHARD_ROWS, hidden,
                                       {LinearPart{gate_up, inner, false, 0, 0, 2 * inner},
                                        LinearPart{gate_up, inner, false, 0, inner, 2 * inner}});
            l.down = weights.linear(PB_SHARD_COLS, inner, {{name + "mlp.down_proj", hidden}});
        }
        norm_ = weights.vector(hidden, "model.norm.weight");
        head_ = config.get<bool>("tie_word_embeddings", false)
                    ? weights.tied(embedding_)
                    : weights.linear(PB_SHARD_NONE, hidden, {{"lm_head", s_.vocab}});
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(window_, s_.usual_scale()); }

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
    struct Layer { // indices of weights
        uint32_t norm, qkv, out, mlp_norm, gate_up, down;
    };
    patchbay::DecoderShape s_;
    float eps_ = 0, rope_scale_ = 1;
    uint32_t window_ = 0, embedding_ = 0, rope_ = 0, norm_ = 0, head_ = 0;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Phi3>({.name = "phi3", .version = "1.0.0", .summary = "Phi 3, 3.5 and 4"}))
