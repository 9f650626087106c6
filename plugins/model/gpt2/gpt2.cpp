// gpt2 - GPT-2: LayerNorm with bias, learned positions, one fused q, k, v; matrices are stored (in, out).
#include "patchbay/sdk/lm_head.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Gpt2 : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"GPT2LMHeadModel", nullptr};
    static constexpr const char* kNeeds[] = {"layer_norm", "gelu_tanh", "relu", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kGpt2Tables);
        s_.hidden = config.integer_as("n_embd", "hidden_size", 1, 1 << 16);
        s_.inner = config.integer("n_inner", 1, 1 << 20, 4 * s_.hidden);
        s_.layers = config.integer_as("n_layer", "num_hidden_layers", 1, 1024);
        s_.heads = s_.kv_heads = config.integer_as("n_head", "num_attention_heads", 1, 4096);
        s_.vocab = config.integer("vocab_size", 1, 1 << 24);
        s_.positions = config.integer_as("n_positions", "max_position_embeddings", 1, 1 << 26, 1024);
        s_.ranks = config.raw.tensor_parallel_size;
        if (s_.hidden % s_.heads != 0) throw patchbay::Error(PB_INVALID, "n_embd is not a multiple of n_head");
        patchbay::check_deals({{"n_head", s_.heads}, {"n_inner", s_.inner}}, s_.ranks);
        s_.head_dim = s_.hidden / s_.heads;
        eps_ = patchbay::norm_epsilon(config, "layer_norm_epsilon", 1e-5f);
        relu_ = config.one_of("activation_function", {"gelu_new", "gelu_pytorch_tanh", "relu"}) == "relu";
        scale_ = config.get<bool>("scale_attn_weights", true) ? s_.usual_scale() : 1;
        scale_by_layer_ = config.get<bool>("scale_attn_by_inverse_layer_idx", false);

        const int64_t hidden = s_.hidden, inner = s_.inner, d = s_.head_dim;
        embedding_ = weights.embedding({"transformer.wte", s_.vocab}, hidden);
        positions_ = weights.embedding({"transformer.wpe", s_.positions}, hidden);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const std::string name = "transformer.h." + std::to_string(i) + ".";
            const auto third = [&](int64_t which) { // of the fused q, k, v
                return patchbay::LinearPart{name + "attn.c_attn", hidden, true, d, which * hidden, 3 * hidden, true};
            };
            const auto whole = [&](const std::string& matrix, int64_t rows, int64_t unit) {
                return patchbay::LinearPart{name + matrix, rows, true, unit, 0, 0, true};
            };
            Layer& l = layers_.emplace_back();
            l.norm = norm(name + "ln_1");
            l.qkv = weights.linear(PB_SHARD_ROWS, hidden, {third(0), third(1), third(2)});
            l.out = weights.linear(PB_SHARD_COLS, hidden, {whole("attn.c_proj", hidden, d)});
            l.mlp_norm = norm(name + "ln_2");
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {whole("mlp.c_fc", inner, 0)});
            l.down = weights.linear(PB_SHARD_COLS, inner, {whole("mlp.c_proj", hidden, 0)});
        }
        norm_ = norm("transformer.ln_f");
        const bool tied = config.get<bool>("tie_word_embeddings", true);
        head_ = patchbay::LmHead::list(weights, s_, tied ? "transformer.wte" : "lm_head",
                                       tied ? std::optional(embedding_) : std::nullopt);
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t layer) const {
        return s_.kv(0, scale_by_layer_ ? scale_ / static_cast<float>(layer + 1) : scale_);
    }

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
            f.layer_norm(h, x, l.norm.weight, l.norm.bias, eps_);
            f.linear(a.qkv, h, l.qkv);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(y, a.out_rows, l.out);
            f.all_reduce(y);
            f.add(x, y);
            f.layer_norm(h, x, l.mlp_norm.weight, l.mlp_norm.bias, eps_);
            f.linear(up, h, l.up);
            if (relu_) f.relu(up);
            else f.gelu_tanh(up);
            f.linear(y, up, l.down);
            f.all_reduce(y);
            f.add(x, y);
        }
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        const pb_tensor last = f.temp({rows, s_.hidden}), normed = f.temp({rows, s_.hidden});
        f.gather_rows(last, x, f.raw.logit_rows);
        f.layer_norm(normed, last, norm_.weight, norm_.bias, eps_);
        head_.run(f, normed);
    }

  private:
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

    patchbay::DecoderShape s_;
    float eps_ = 0, scale_ = 1;
    bool scale_by_layer_ = false, relu_ = false;
    uint32_t embedding_ = 0, positions_ = 0;
    patchbay::LmHead head_;
    Norm norm_{};
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Gpt2>({.name = "gpt2", .version = "1.0.0", .summary = "GPT-2"}))
