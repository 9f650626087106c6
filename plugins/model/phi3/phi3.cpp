// phi3 - Phi 3, 3.5 and 4 (mini, medium): Llama's layers, stored with q, k, v in one matrix and gate, up in another;
// rotary positions on a part of each head.
#include "patchbay/sdk/decoder_blocks.hpp"

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

        ends_ = patchbay::DecoderEnds::list(weights, config, s_);
        rotary_ = patchbay::Rotary::list(weights, s_, patchbay::rope_settings(config), rotary);
        const int64_t inner = s_.inner, q = s_.q_size(), kv = s_.kv_size(), d = s_.head_dim, all = q + 2 * kv;
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", qkv = name + "self_attn.qkv_proj",
                              gate_up = name + "mlp.gate_up_proj";
            Layer& l = layers_.emplace_back();
            l.norm = weights.vector(s_.hidden, name + "input_layernorm.weight");
            l.attention.qkv = weights.linear(PB_SHARD_ROWS, s_.hidden,
                                             {LinearPart{qkv, q, false, d, 0, all},
                                              LinearPart{qkv, kv, false, d, q, all},
                                              LinearPart{qkv, kv, false, d, q + kv, all}});
            l.attention.out = weights.linear(PB_SHARD_COLS, q, {{name + "self_attn.o_proj", s_.hidden, false, d}});
            l.mlp_norm = weights.vector(s_.hidden, name + "post_attention_layernorm.weight");
            l.mlp.gate_up = weights.linear(PB_SHARD_ROWS, s_.hidden,
                                           {LinearPart{gate_up, inner, false, 0, 0, 2 * inner},
                                            LinearPart{gate_up, inner, false, 0, inner, 2 * inner}});
            l.mlp.down = weights.linear(PB_SHARD_COLS, inner, {{name + "mlp.down_proj", s_.hidden}});
        }
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(window_, s_.usual_scale()); }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, s_);
        const patchbay::RotaryAttention attention(f, s_);
        const patchbay::GatedMlp mlp(f, s_);
        f.embedding(stream.x, ends_.embedding);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            stream.enter_layer(f, i, l.norm, eps_);
            attention.run(f, i, l.attention, rotary_, stream, eps_);
            stream.enter_block(f, l.mlp_norm, eps_);
            mlp.run(f, l.mlp, stream);
        }
        ends_.logits(f, s_, stream, eps_);
    }

  private:
    struct Layer { // norm, mlp_norm: indices of weights
        uint32_t norm = 0, mlp_norm = 0;
        patchbay::AttentionWeights attention;
        patchbay::MlpWeights mlp;
    };
    patchbay::DecoderShape s_;
    float eps_ = 0;
    uint32_t window_ = 0;
    patchbay::DecoderEnds ends_;
    patchbay::Rotary rotary_;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Phi3>({.name = "phi3", .version = "1.0.0", .summary = "Phi 3, 3.5 and 4"}))
