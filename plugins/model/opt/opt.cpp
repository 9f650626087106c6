// opt - OPT: LayerNorm with bias before or after each block, learned positions that begin at row 2, ReLU.
#include "patchbay/sdk/lm_head.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Opt : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"OPTForCausalLM", nullptr};
    static constexpr const char* kNeeds[] = {"layer_norm", "relu", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kOptTables);
        s_.hidden = config.integer("hidden_size", 1, 1 << 16);
        s_.inner = config.integer("ffn_dim", 1, 1 << 20);
        s_.layers = config.integer("num_hidden_layers", 1, 1024);
        s_.heads = s_.kv_heads = config.integer("num_attention_heads", 1, 4096);
        s_.vocab = config.integer("vocab_size", 1, 1 << 24);
        s_.positions = config.integer("max_position_embeddings", 1, 1 << 26, 2048);
        s_.ranks = config.raw.tensor_parallel_size;
        if (s_.hidden % s_.heads != 0)
            throw patchbay::Error(PB_INVALID, "hidden_size is not a multiple of num_attention_heads");
        patchbay::check_deals({{"num_attention_heads", s_.heads}, {"ffn_dim", s_.inner}}, s_.ranks);
        s_.head_dim = s_.hidden / s_.heads;
        config.one_of("activation_function", {"relu"});
        config.one_of("layer_norm_elementwise_affine", {"true"});
        if (const uint32_t width = config.integer("word_embed_proj_dim", 1, 1 << 20, s_.hidden); width != s_.hidden)
            throw patchbay::Error(PB_UNSUPPORTED, "word_embed_proj_dim " + std::to_string(width) +
                                                      " is not hidden_size " + std::to_string(s_.hidden));
        norm_before_ = config.get<bool>("do_layer_norm_before", true);
        final_norm_ = norm_before_ && !config.get<bool>("_remove_final_layer_norm", false);

        const bool bias = config.get<bool>("enable_bias", true);
        const int64_t hidden = s_.hidden, d = s_.head_dim;
        const std::string root = "model.decoder.";
        embedding_ = weights.embedding({root + "embed_tokens", s_.vocab}, hidden);
        positions_ = weights.embedding(
            {root + "embed_positions", s_.positions, false, 0, kFirstPosition, s_.positions + kFirstPosition}, hidden);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = root + "layers." + std::to_string(i) + ".", attention = name + "self_attn.";
            Layer& l = layers_.emplace_back();
            l.norm = norm(name + "self_attn_layer_norm");
            l.qkv = weights.linear(PB_SHARD_ROWS, hidden, {{attention + "q_proj", hidden, bias, d},
                                                           {attention + "k_proj", hidden, bias, d},
                                                           {attention + "v_proj", hidden, bias, d}});
            l.out = weights.linear(PB_SHARD_COLS, hidden, {{attention + "out_proj", hidden, bias, d}});
            l.mlp_norm = norm(name + "final_layer_norm"); // so called in each layer
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {{name + "fc1", s_.inner, bias}});
            l.down = weights.linear(PB_SHARD_COLS, s_.inner, {{name + "fc2", hidden, bias}});
        }
        if (final_norm_) norm_ = norm(root + "final_layer_norm");
        const bool tied = config.get<bool>("tie_word_embeddings", true);
        head_ = patchbay::LmHead::list(weights, s_, tied ? root + "embed_tokens" : "lm_head",
                                       tied ? std::optional(embedding_) : std::nullopt);
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return s_.kv(0, s_.usual_scale()); }

    void forward(const Forward& f) const {
        const int64_t t = f.tokens();
        const pb_tensor x = f.temp({t, s_.hidden}), h = f.temp({t, s_.hidden}), y = f.temp({t, s_.hidden});
        const patchbay::AttentionTensors a(f, s_);
        const pb_tensor up = f.temp({t, s_.inner / s_.ranks});

        f.embedding(x, embedding_);
        f.embed_positions(y, positions_);
        f.add(x, y);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            const pb_tensor& in = norm_before_ ? h : x;
            if (norm_before_) normalise(f, h, x, l.norm);
            f.linear(a.qkv, in, l.qkv);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(y, a.out_rows, l.out);
            f.all_reduce(y);
            f.add(x, y);
            if (norm_before_) normalise(f, h, x, l.mlp_norm);
            else normalise(f, x, x, l.norm);
            f.linear(up, in, l.up);
            f.relu(up);
            f.linear(y, up, l.down);
            f.all_reduce(y);
            f.add(x, y);
            if (!norm_before_) normalise(f, x, x, l.mlp_norm);
        }
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        const pb_tensor last = f.temp({rows, s_.hidden});
        f.gather_rows(last, x, f.raw.logit_rows);
        if (final_norm_) normalise(f, last, last, norm_);
        head_.run(f, last);
    }

  private:
    static constexpr int64_t kFirstPosition = 2; // the rows before it stand for padding
    static constexpr float kEpsilon = 1e-5f;
    struct Norm {
        uint32_t weight, bias;
    };
    struct Layer { // indices of weights
        Norm norm, mlp_norm;
        uint32_t qkv, out, up, down;
    };
    Norm norm(const std::string& name) {
        const uint32_t weight = weights.vector(s_.hidden, name + ".weight");
        return {weight, weights.vector(s_.hidden, name + ".bias")};
    }
    static void normalise(const Forward& f, const pb_tensor& out, const pb_tensor& x, const Norm& n) {
        f.layer_norm(out, x, n.weight, n.bias, kEpsilon);
    }

    patchbay::DecoderShape s_;
    bool norm_before_ = true, final_norm_ = true;
    uint32_t embedding_ = 0, positions_ = 0;
    patchbay::LmHead head_;
    Norm norm_{};
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Opt>({.name = "opt", .version = "1.0.0", .summary = "OPT"}))
