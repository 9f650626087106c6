// olmo2 - OLMo 2: Llama's layers with the norms after the blocks, and q and k normed as a whole.
#include "patchbay/sdk/decoder_blocks.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Olmo2 : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"Olmo2ForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kOlmo2Tables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kOlmo2Tables);
        s_ = patchbay::decoder_shape(config, {.positions = 2048});
        if (s_.ranks > 1)
            throw patchbay::Error(PB_UNSUPPORTED, "OLMo 2 norms q and k over all heads, which ranks have parts of "
                                                  "(set tensor_parallel_size: 1)");
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        config.one_of("hidden_act", {"silu"});
        const bool bias = config.get<bool>("attention_bias", false);
        ends_ = patchbay::DecoderEnds::list(weights, config, s_);
        rotary_ = patchbay::Rotary::list(weights, s_, patchbay::rope_settings(config, {.positions_if_missing = 2048}),
                                         s_.head_dim);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", attention = name + "self_attn.";
            Layer& l = layers_.emplace_back();
            l.attention = patchbay::AttentionWeights::list(weights, s_, attention, {bias, bias});
            l.attention.q_norm = weights.vector(s_.q_size(), attention + "q_norm.weight");
            l.attention.k_norm = weights.vector(s_.kv_size(), attention + "k_norm.weight");
            l.after_attention = weights.vector(s_.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, s_, name + "mlp.");
            l.after_mlp = weights.vector(s_.hidden, name + "post_feedforward_layernorm.weight");
        }
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(0, s_.usual_scale()); }

    void forward(const Forward& f) const {
        patchbay::Stream stream(f, s_);
        const patchbay::AttentionTensors a(f, s_);
        const patchbay::GatedMlp mlp(f, s_);
        const pb_tensor q = patchbay::columns(a.qkv, 0, s_.q_size()),
                        k = patchbay::columns(a.qkv, s_.q_size(), s_.kv_size());
        stream.h = stream.x; // blocks read the stream as it is
        f.embedding(stream.x, ends_.embedding);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            f.linear(a.qkv, stream.h, l.attention.qkv);
            f.rms_norm(q, q, l.attention.q_norm, eps_);
            f.rms_norm(k, k, l.attention.k_norm, eps_);
            f.rope(a.q, rotary_.frequencies, rotary_.scale);
            f.rope(a.k, rotary_.frequencies, rotary_.scale);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(stream.y, a.out_rows, l.attention.out);
            add_normed(f, stream, l.after_attention);
            mlp.run(f, l.mlp, stream);
            f.rms_norm(stream.y, stream.y, l.after_mlp, eps_);
            if (i + 1 < s_.layers) f.add(stream.x, stream.y); // the last is added by logits()
        }
        ends_.logits(f, s_, stream, eps_);
    }

  private:
    struct Layer { // norms: indices of weights
        patchbay::AttentionWeights attention;
        patchbay::MlpWeights mlp;
        uint32_t after_attention = 0, after_mlp = 0;
    };

    void add_normed(const Forward& f, const patchbay::Stream& stream, uint32_t norm) const {
        f.rms_norm(stream.y, stream.y, norm, eps_);
        f.add(stream.x, stream.y);
    }

    patchbay::DecoderShape s_;
    float eps_ = 0;
    patchbay::DecoderEnds ends_;
    patchbay::Rotary rotary_;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Olmo2>({.name = "olmo2", .version = "1.0.0", .summary = "OLMo 2"}))
