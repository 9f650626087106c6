// eagle - EAGLE's head for targets of the Llama kind: from a token and the hidden state before it, decoder layers make
// the hidden state that the target would make, for the target's own lm head.
#include "patchbay/sdk/decoder_blocks.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Eagle : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"EagleLlamaForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kEagleTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        config.one_of("architectures.0", {kArchitectures[0], "LlamaForCausalLM"}); // what checkpoints say
        patchbay::check_keys(config, patchbay::config_keys::kEagleTables);
        s_ = patchbay::decoder_shape(config);
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        config.one_of("hidden_act", {"silu"});
        const uint32_t drafted = config.integer("draft_vocab_size", 1, 1 << 24, s_.vocab);
        if (drafted != s_.vocab)
            throw patchbay::Error(PB_UNSUPPORTED, "draft_vocab_size is " + std::to_string(drafted) +
                                                      ", less than vocab_size: that is an EAGLE-3 head");

        const bool bias = config.get<bool>("attention_bias", false), mlp_bias = config.get<bool>("mlp_bias", false);
        embedding_ = weights.of_target(PB_TARGET_EMBEDDING, s_.hidden);
        joint_ = weights.linear(PB_SHARD_NONE, 2 * int64_t{s_.hidden},
                                {{"fc", s_.hidden, config.get<bool>("bias", true)}});
        rotary_ = patchbay::Rotary::list(weights, s_, patchbay::rope_settings(config), s_.head_dim);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "layers." + std::to_string(i) + ".";
            Layer& l = layers_.emplace_back();
            if (i > 0) l.norm = weights.vector(s_.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, s_, name + "self_attn.", {bias, bias});
            l.mlp_norm = weights.vector(s_.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, s_, name + "mlp.", mlp_bias);
        }
        head_.weight = weights.of_target(PB_TARGET_LM_HEAD, s_.hidden);
        return s_.facts();
    }
    uint32_t max_draft_depth() const { return 0; } // it has layers

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(0, s_.usual_scale()); }

    void forward(const Forward& f) const {
        patchbay::Stream stream(f, s_);
        stream.x = f.raw.hidden; // what the layers make is what stands in for the target's
        const patchbay::RotaryAttention attention(f, s_);
        const patchbay::GatedMlp mlp(f, s_);
        const pb_tensor both = f.temp({f.tokens(), 2 * int64_t{s_.hidden}}); // token, hidden state
        f.embedding(patchbay::columns(both, 0, s_.hidden), embedding_);
        f.features(patchbay::columns(both, s_.hidden, s_.hidden));
        f.linear(stream.x, both, joint_);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            patchbay::Stream into = stream;
            if (i == 0) into.h = stream.x; // the first layer's input is not normed
            else stream.enter_block(f, l.norm, eps_);
            attention.run(f, i, l.attention, rotary_, into, eps_);
            stream.enter_block(f, l.mlp_norm, eps_);
            mlp.run(f, l.mlp, stream);
        }
        f.add(stream.x, stream.y);
        if (f.raw.logit_rows.shape[0] > 0) head_.run_rows(f, s_, stream.x);
    }

  private:
    struct Layer { // norm, mlp_norm: indices of weights
        uint32_t norm = 0, mlp_norm = 0;
        patchbay::AttentionWeights attention;
        patchbay::MlpWeights mlp;
    };
    patchbay::DecoderShape s_;
    float eps_ = 0;
    uint32_t embedding_ = 0, joint_ = 0;
    patchbay::Rotary rotary_;
    std::vector<Layer> layers_;
    patchbay::LmHead head_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Eagle>(
    {.name = "eagle", .version = "1.0.0", .summary = "EAGLE's head, which drafts from hidden states of a Llama"}))
