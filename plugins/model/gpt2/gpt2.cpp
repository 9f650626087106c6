// gpt2 - GPT-2: LayerNorm with bias, learned positions, one fused q, k, v; matrices are stored (in, out).
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

class Gpt2 : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"GPT2LMHeadModel", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kGpt2Tables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kGpt2Tables);
        shape.hidden = config.integer_as("n_embd", "hidden_size", 1, 1 << 16);
        shape.inner = config.integer("n_inner", 1, 1 << 20, 4 * shape.hidden);
        shape.layers = config.integer_as("n_layer", "num_hidden_layers", 1, 1024);
        shape.heads = shape.kv_heads = config.integer_as("n_head", "num_attention_heads", 1, 4096);
        shape.vocab = config.integer("vocab_size", 1, 1 << 24);
        shape.positions = config.integer_as("n_positions", "max_position_embeddings", 1, 1 << 26, 1024);
        shape.ranks = config.raw.tensor_parallel_size;
        if (shape.hidden % shape.heads != 0) throw patchbay::Error(PB_INVALID, "n_embd is not a multiple of n_head");
        patchbay::check_deals({{"n_head", shape.heads}, {"n_inner", shape.inner}}, shape.ranks);
        shape.head_dim = shape.hidden / shape.heads;
        eps = patchbay::norm_epsilon(config, "layer_norm_epsilon", 1e-5f);
        act = patchbay::activation(config, "activation_function", patchbay::Activation::kGeluTanh);
        scale_ = config.get<bool>("scale_attn_weights", true) ? shape.usual_scale() : 1;
        scale_by_layer_ = config.get<bool>("scale_attn_by_inverse_layer_idx", false);

        const int64_t hidden = shape.hidden, inner = shape.inner, d = shape.head_dim;
        embedding = weights.embedding({"transformer.wte", shape.vocab}, hidden);
        positions = weights.embedding({"transformer.wpe", shape.positions}, hidden);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "transformer.h." + std::to_string(i) + ".";
            const auto third = [&](int64_t which) { // of the fused q, k, v
                return patchbay::LinearPart{name + "attn.c_attn", hidden, true, d, which * hidden, 3 * hidden, true};
            };
            const auto whole = [&](const std::string& matrix, int64_t rows, int64_t unit) {
                return patchbay::LinearPart{name + matrix, rows, true, unit, 0, 0, true};
            };
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + "ln_1");
            l.attention.qkv = weights.linear(PB_SHARD_ROWS, hidden, {third(0), third(1), third(2)});
            l.attention.out = weights.linear(PB_SHARD_COLS, hidden, {whole("attn.c_proj", hidden, d)});
            l.mlp_norm = list_norm(name + "ln_2");
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {whole("mlp.c_fc", inner, 0)});
            l.down = weights.linear(PB_SHARD_COLS, inner, {whole("mlp.c_proj", hidden, 0)});
        }
        norm = list_norm("transformer.ln_f");
        list_head(config, "transformer.wte");
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t layer) const {
        return shape.kv(0, scale_by_layer_ ? scale_ / static_cast<float>(layer + 1) : scale_);
    }

  private:
    float scale_ = 1;
    bool scale_by_layer_ = false;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Gpt2>({.name = "gpt2", .version = "1.0.0", .summary = "GPT-2"}))
