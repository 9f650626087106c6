// gemma - Gemma 1, 2 and 3 (text): norms stored as w − 1, scaled embeddings, GELU gates; from 2 on norms after each
// block too, soft caps, local and global layers; from 3 on normed heads and rotary positions of two bases.
#include "patchbay/sdk/decoder_blocks.hpp"
#include "patchbay/sdk/text_part.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Gemma : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM",
                                                     "Gemma3ForConditionalGeneration", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {
        {kArchitectures[0], patchbay::config_keys::kGemma1Tables},
        {kArchitectures[1], patchbay::config_keys::kGemma2Tables},
        {kArchitectures[2], patchbay::config_keys::kGemma3Tables},
        {kArchitectures[3], patchbay::config_keys::kGemma3VisionTables},
    };
    static constexpr const char* kNeeds[] = {"gelu_tanh_mul", "gelu_erf_mul", "scale", "soft_cap", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const auto name = config.one_of("architectures.0", {kArchitectures[0], kArchitectures[1], kArchitectures[2],
                                                            kArchitectures[3]});
        generation_ = name == kArchitectures[0] ? 1 : name == kArchitectures[1] ? 2 : 3;
        if (name != kArchitectures[3]) return read(config, "model.", "lm_head");
        patchbay::check_keys(config, patchbay::config_keys::kGemma3VisionTables);
        const patchbay::TextPart text(config, {{"vocab_size", "262208"},
                                               {"num_attention_heads", "8"},
                                               {"num_key_value_heads", "4"},
                                               {"max_position_embeddings", "131072"}});
        sees_ = true;
        return read(patchbay::ModelConfig(text.config, config.host()), "language_model.model.",
                    "language_model.lm_head");
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return s_.kv(windows_[layer], scale_, attention_cap_); }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, s_);
        const patchbay::RotaryAttention attention(f, s_);
        const patchbay::GatedMlp mlp(f, s_, gate_);
        f.embedding(stream.x, ends_.embedding);
        f.scale(stream.x, std::sqrt(static_cast<float>(s_.hidden)));
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            stream.enter_layer(f, i, l.norm, eps_);
            attention.run(f, i, l.attention, windows_[i] ? local_ : global_, stream, eps_);
            if (generation_ > 1) f.rms_norm(stream.y, stream.y, l.after_attention, eps_);
            stream.enter_block(f, l.mlp_norm, eps_);
            mlp.run(f, l.mlp, stream);
            if (generation_ > 1) f.rms_norm(stream.y, stream.y, l.after_mlp, eps_);
        }
        ends_.logits(f, s_, stream, eps_);
        if (logit_cap_ > 0 && f.raw.logit_rows.shape[0] > 0) f.soft_cap(f.raw.logits, logit_cap_);
    }

  private:
    struct Layer { // norms: indices of weights
        uint32_t norm = 0, after_attention = 0, mlp_norm = 0, after_mlp = 0;
        patchbay::AttentionWeights attention;
        patchbay::MlpWeights mlp;
    };

    pb_model_facts read(const patchbay::ModelConfig& config, const std::string& root, const std::string& head) {
        patchbay::check_keys(config, generation_ == 1   ? patchbay::config_keys::kGemma1Tables
                                     : generation_ == 2 ? patchbay::config_keys::kGemma2Tables
                                                        : patchbay::config_keys::kGemma3Tables);
        const uint32_t positions = generation_ == 3 ? 131072 : 8192;
        s_ = patchbay::decoder_shape(config, {.head_dim = 256, .positions = positions});
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        if (generation_ == 1) config.one_of("hidden_act", {"gelu_pytorch_tanh", "gelu"}); // both mean the tanh form
        else if (config.one_of("hidden_activation", {"gelu_pytorch_tanh", "gelu"}) == "gelu") gate_ = PB_GATE_GELU_ERF;
        read_attention(config);
        ends_ = patchbay::DecoderEnds::list(weights, config, s_, {root, head, 1, true});
        if (generation_ == 3) read_positions(config);
        else local_ = global_ = rope(config, {.positions_if_missing = positions});
        for (uint32_t i = 0; i < s_.layers; ++i)
            layers_.push_back(layer(config, root + "layers." + std::to_string(i) + "."));
        return s_.facts();
    }

    // rope_parameters has an object for each kind of layer. rope_scaling, the form before, is that of global layers.
    void read_positions(const patchbay::ModelConfig& config) {
        const std::string global = "rope_parameters.full_attention.", scaling = "rope_scaling.";
        const bool old_form = config.has_section("rope_scaling");
        if (old_form && (config.has_section("rope_parameters") || !config.find(scaling + "rope_type")))
            throw patchbay::Error(PB_UNSUPPORTED,
                                  "rope_scaling of Gemma 3 beside rope_parameters, or without rope_type, is not "
                                  "supported (move it to rope_parameters.full_attention)");
        if (config.find("rope_parameters.rope_theta") || config.find("rope_parameters.rope_type"))
            config.warn("rope_parameters is not read: that of Gemma 3 has full_attention and sliding_attention");
        local_ = rope(config, {.theta = "rope_local_base_freq",
                               .group = "rope_parameters.sliding_attention.",
                               .positions_if_missing = 131072});
        global_ = rope(config, {.group = old_form ? scaling : global,
                                .theta_if_missing = 1e6,
                                .positions_if_missing = 131072});
    }

    void read_attention(const patchbay::ModelConfig& config) {
        const bool caps = generation_ == 2;
        attention_cap_ = caps ? cap(config, "attn_logit_softcapping", 50) : 0;
        logit_cap_ = generation_ == 1 ? 0 : cap(config, "final_logit_softcapping", caps ? 30 : 0);
        if (sees_ && logit_cap_ > 0) {
            config.warn("final_logit_softcapping is not read (Gemma3ForConditionalGeneration does not cap logits)");
            logit_cap_ = 0;
        }
        const auto scalar =
            generation_ == 1 ? static_cast<float>(s_.head_dim) : config.get<float>("query_pre_attn_scalar", 256);
        if (!(scalar > 0))
            throw patchbay::Error(PB_INVALID,
                                  "query_pre_attn_scalar is " + std::to_string(scalar) + ", expected more than 0");
        scale_ = 1 / std::sqrt(scalar);
        const uint32_t window = generation_ == 1 ? 0 : patchbay::sliding_window(config, 4096);
        const uint32_t pattern =
            generation_ == 2 ? 2 : config.integer("sliding_window_pattern", 1, 1024, 6); // one of so many is global
        windows_ = patchbay::layer_windows(config, s_.layers, window,
                                           [&](uint32_t i) { return generation_ > 1 && (i + 1) % pattern != 0; });
    }

    static float cap(const patchbay::ModelConfig& config, const char* key, float default_value) {
        const float value = config.get_or_none<float>(key, default_value);
        if (!(value >= 0))
            throw patchbay::Error(PB_INVALID,
                                  std::string(key) + " is " + std::to_string(value) + ", expected more than 0 or null");
        return value;
    }

    patchbay::Rotary rope(const patchbay::ModelConfig& config, const patchbay::RopeKeys& keys) {
        patchbay::RopeSettings settings = patchbay::rope_settings(config, keys);
        if (generation_ == 3) settings.reach = 0; // its max_position_embeddings is already what the scaling reaches
        return patchbay::Rotary::list(weights, s_, settings, s_.head_dim);
    }

    uint32_t norm(const std::string& name) { return weights.vector(s_.hidden, name + ".weight", 1); }

    Layer layer(const patchbay::ModelConfig& config, const std::string& name) {
        const bool bias = config.get<bool>("attention_bias", false);
        const std::string attention = name + "self_attn.";
        Layer l;
        l.norm = norm(name + "input_layernorm");
        l.attention = patchbay::AttentionWeights::list(weights, s_, attention, {bias, bias});
        if (generation_ == 3) l.attention.list_head_norms(weights, s_, attention, 1);
        if (generation_ > 1) { // the name that the first generation gives the norm before the MLP
            l.after_attention = norm(name + "post_attention_layernorm");
            l.mlp_norm = norm(name + "pre_feedforward_layernorm");
            l.after_mlp = norm(name + "post_feedforward_layernorm");
        } else {
            l.mlp_norm = norm(name + "post_attention_layernorm");
        }
        l.mlp = patchbay::MlpWeights::list(weights, s_, name + "mlp.");
        return l;
    }

    patchbay::DecoderShape s_;
    int generation_ = 0;
    pb_gate gate_ = PB_GATE_GELU_TANH;
    bool sees_ = false; // images: of the whole model this is the text
    float eps_ = 0, scale_ = 1, attention_cap_ = 0, logit_cap_ = 0; // cap 0: none
    std::vector<uint32_t> windows_;                                  // by layer; 0: it sees all
    patchbay::DecoderEnds ends_;
    patchbay::Rotary local_, global_;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Gemma>({.name = "gemma", .version = "1.0.0", .summary = "Gemma 1, 2 and 3, text"}))
