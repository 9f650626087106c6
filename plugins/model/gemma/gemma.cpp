// gemma - Gemma 1, 2 and 3 (text): norms stored as w − 1, scaled embeddings, GELU gates; from 2 on norms after each
// block too, soft caps, local and global layers; from 3 on normed heads and rotary positions of two bases.
#include "patchbay/sdk/decoder.hpp"
#include "patchbay/sdk/rope.hpp"
#include "patchbay/sdk/weight_list.hpp"

namespace {

using patchbay::Forward;

class Gemma : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM",
                                                     "Gemma3ForConditionalGeneration", nullptr};
    static constexpr const char* kNeeds[] = {"gelu_tanh_mul", "scale", "soft_cap", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        const auto name = config.one_of("architectures.0", {kArchitectures[0], kArchitectures[1], kArchitectures[2],
                                                            kArchitectures[3]});
        generation_ = name == kArchitectures[0] ? 1 : name == kArchitectures[1] ? 2 : 3;
        if (name != kArchitectures[3]) return read(config, "model.", "lm_head");
        const TextPart text(config);
        return read(patchbay::ModelConfig(text.config), "language_model.model.", "language_model.lm_head");
    }

    pb_kv_spec kv_spec(uint32_t layer) const { return s_.kv(windows_[layer], scale_, attention_cap_); }

    void forward(const Forward& f) const {
        const int64_t t = f.tokens(), inner = s_.inner / s_.ranks;
        const pb_tensor x = f.temp({t, s_.hidden}), h = f.temp({t, s_.hidden}), y = f.temp({t, s_.hidden});
        const patchbay::AttentionTensors a(f, s_);
        const pb_tensor gate_up = f.temp({t, 2 * inner}), gated = f.temp({t, inner});

        f.embedding(x, embedding_);
        f.scale(x, std::sqrt(static_cast<float>(s_.hidden)));
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            if (i == 0) f.rms_norm(h, x, l.norm, eps_);
            else f.add_rms_norm(h, x, y, l.norm, eps_);
            f.linear(a.qkv, h, l.qkv);
            if (generation_ == 3) {
                f.rms_norm(a.q, a.q, l.q_norm, eps_);
                f.rms_norm(a.k, a.k, l.k_norm, eps_);
            }
            const Rope& rope = windows_[i] ? local_ : global_;
            f.rope(a.q, rope.frequencies, rope.scale);
            f.rope(a.k, rope.frequencies, rope.scale);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(y, a.out_rows, l.out);
            f.all_reduce(y);
            if (generation_ > 1) f.rms_norm(y, y, l.after_attention, eps_);
            f.add_rms_norm(h, x, y, l.mlp_norm, eps_);
            f.linear(gate_up, h, l.gate_up);
            f.gelu_tanh_mul(gated, gate_up);
            f.linear(y, gated, l.down);
            f.all_reduce(y);
            if (generation_ > 1) f.rms_norm(y, y, l.after_mlp, eps_);
        }
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        f.add(x, y);
        const pb_tensor last = f.temp({rows, s_.hidden}), normed = f.temp({rows, s_.hidden});
        f.gather_rows(last, x, f.raw.logit_rows);
        f.rms_norm(normed, last, norm_, eps_);
        f.linear(f.raw.logits, normed, head_);
        if (logit_cap_ > 0) f.soft_cap(f.raw.logits, logit_cap_);
    }

  private:
    struct Rope {
        uint32_t frequencies;
        float scale;
    };
    struct Layer { // indices of weights
        uint32_t norm, qkv, q_norm, k_norm, out, after_attention, mlp_norm, gate_up, down, after_mlp;
    };

    // text_config of a model that also sees, with what such a model has where its config.json does not say.
    struct TextPart {
        explicit TextPart(const patchbay::ModelConfig& whole) : config(whole.raw) {
            constexpr std::string_view kPrefix = "text_config.";
            for (uint32_t i = 0; i < whole.raw.count; ++i) {
                const pb_setting& item = whole.raw.items[i];
                const std::string_view key(item.key.data, item.key.size);
                if (key.starts_with(kPrefix))
                    items.push_back({{item.key.data + kPrefix.size(), item.key.size - kPrefix.size()}, item.value});
            }
            constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {
                {"vocab_size", "262208"}, {"num_attention_heads", "8"}, {"num_key_value_heads", "4"},
                {"max_position_embeddings", "131072"}};
            for (const auto& [key, value] : kDefaults)
                if (!whole.find(std::string(kPrefix) + std::string(key)))
                    items.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
            config.count = static_cast<uint32_t>(items.size());
            config.items = items.data();
        }
        TextPart(const TextPart&) = delete;
        std::vector<pb_setting> items;
        pb_model_config config;
    };

    pb_model_facts read(const patchbay::ModelConfig& config, const std::string& root, const std::string& head) {
        s_ = patchbay::decoder_shape(config, 256);
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        // hidden_act, which the first generation had, says gelu and always meant this
        config.one_of("hidden_activation", {"gelu_pytorch_tanh"});
        config.one_of("use_bidirectional_attention", {"false"});
        read_attention(config);
        local_ = rope(config, {.theta = "rope_local_base_freq", .group = "rope_parameters.sliding_attention."});
        const bool nested = config.find("rope_parameters.full_attention.rope_theta").has_value();
        global_ = rope(config, {.group = nested ? "rope_parameters.full_attention." : "",
                                .theta_if_missing = generation_ == 3 ? 1e6 : 1e4});
        if (generation_ < 3) local_ = global_;

        embedding_ = weights.embedding({root + "embed_tokens", s_.vocab}, s_.hidden);
        for (uint32_t i = 0; i < s_.layers; ++i)
            layers_.push_back(layer(config, root + "layers." + std::to_string(i) + "."));
        norm_ = norm(root + "norm");
        head_ = config.get<bool>("tie_word_embeddings", true)
                    ? weights.tied(embedding_)
                    : weights.linear(PB_SHARD_NONE, s_.hidden, {{head, s_.vocab}});
        return s_.facts();
    }

    void read_attention(const patchbay::ModelConfig& config) {
        const bool caps = generation_ == 2; // unless config.json says otherwise
        attention_cap_ = generation_ == 1 ? 0 : cap(config, "attn_logit_softcapping", caps ? 50 : 0);
        logit_cap_ = generation_ == 1 ? 0 : cap(config, "final_logit_softcapping", caps ? 30 : 0);
        const auto scalar =
            generation_ == 1 ? static_cast<float>(s_.head_dim) : config.get<float>("query_pre_attn_scalar", 256);
        if (!(scalar > 0))
            throw patchbay::Error(PB_INVALID,
                                  "query_pre_attn_scalar is " + std::to_string(scalar) + ", expected more than 0");
        scale_ = 1 / std::sqrt(scalar);
        const uint32_t window = generation_ == 1 ? 0 : config.get_or_none<uint32_t>("sliding_window", 4096);
        const uint32_t pattern =
            generation_ == 2 ? 2 : config.integer("sliding_window_pattern", 1, 1024, 6); // one of so many is global
        windows_ = patchbay::layer_windows(config, s_.layers, window,
                                           [&](uint32_t i) { return generation_ > 1 && (i + 1) % pattern != 0; });
    }

    static float cap(const patchbay::ModelConfig& config, const char* key, float fallback) {
        const float value = config.get_or_none<float>(key, fallback);
        if (!(value >= 0))
            throw patchbay::Error(PB_INVALID,
                                  std::string(key) + " is " + std::to_string(value) + ", expected more than 0 or null");
        return value;
    }

    Rope rope(const patchbay::ModelConfig& config, const patchbay::RopeKeys& keys) {
        const patchbay::RopeSettings settings = patchbay::rope_settings(config, keys);
        s_.positions = std::min(s_.positions, settings.most_positions);
        return {weights.computed(patchbay::rope_frequencies(settings, s_.head_dim)), settings.cos_scale};
    }

    uint32_t norm(const std::string& name) { return weights.vector(s_.hidden, name + ".weight", 1); }

    Layer layer(const patchbay::ModelConfig& config, const std::string& name) {
        const bool bias = config.get<bool>("attention_bias", false);
        const int64_t hidden = s_.hidden, q = s_.q_size(), kv = s_.kv_size(), d = s_.head_dim;
        const std::string attention = name + "self_attn.", mlp = name + "mlp.";
        Layer l{};
        l.norm = norm(name + "input_layernorm");
        l.qkv = weights.linear(PB_SHARD_ROWS, hidden,
                               {{attention + "q_proj", q, bias, d},
                                {attention + "k_proj", kv, bias, d},
                                {attention + "v_proj", kv, bias, d}});
        if (generation_ == 3) {
            l.q_norm = weights.vector(d, attention + "q_norm.weight", 1);
            l.k_norm = weights.vector(d, attention + "k_norm.weight", 1);
        }
        l.out = weights.linear(PB_SHARD_COLS, q, {{attention + "o_proj", hidden, bias, d}});
        if (generation_ > 1) { // the name that the first generation gives the norm before the MLP
            l.after_attention = norm(name + "post_attention_layernorm");
            l.mlp_norm = norm(name + "pre_feedforward_layernorm");
            l.after_mlp = norm(name + "post_feedforward_layernorm");
        } else {
            l.mlp_norm = norm(name + "post_attention_layernorm");
        }
        l.gate_up = weights.linear(PB_SHARD_ROWS, hidden, {{mlp + "gate_proj", s_.inner}, {mlp + "up_proj", s_.inner}});
        l.down = weights.linear(PB_SHARD_COLS, s_.inner, {{mlp + "down_proj", hidden}});
        return l;
    }

    patchbay::DecoderShape s_;
    int generation_ = 0;
    float eps_ = 0, scale_ = 1, attention_cap_ = 0, logit_cap_ = 0; // cap 0: none
    std::vector<uint32_t> windows_;                                  // by layer; 0: it sees all
    Rope local_{}, global_{};
    uint32_t embedding_ = 0, norm_ = 0, head_ = 0;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Gemma>({.name = "gemma", .version = "1.0.0", .summary = "Gemma 1, 2 and 3, text"}))
