// falcon - Falcon: LayerNorm, one head of keys and values for all queries or for groups of them, rotary positions or
// slopes (ALiBi), attention and MLP on the same input or one after the other.
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

using patchbay::LinearPart;

class Falcon : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"FalconForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kFalconTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kFalconTables);
        read_shape(config);
        eps = patchbay::norm_epsilon(config, "layer_norm_epsilon", 1e-5f);
        act = patchbay::activation(config, "activation", patchbay::Activation::kGeluErf);
        const bool grouped = config.get<bool>("new_decoder_architecture", false);
        const bool parallel = config.get<bool>("parallel_attn", true);
        if (grouped && !parallel)
            throw patchbay::Error(PB_UNSUPPORTED, "parallel_attn false with new_decoder_architecture is not supported");
        order = parallel ? Order::kParallel : Order::kBefore;
        const bool two_norms = grouped && config.integer("num_ln_in_parallel_attn", 1, 2, 2) == 2;
        const bool bias = config.get<bool>("bias", false);

        const int64_t hidden = shape.hidden, d = shape.head_dim;
        embedding = weights.embedding({"transformer.word_embeddings", shape.vocab}, hidden);
        read_positions(config);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "transformer.h." + std::to_string(i) + ".", attention = name + "self_attention.";
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + (two_norms ? "ln_attn" : "input_layernorm"));
            l.attention.qkv = list_qkv(attention + "query_key_value", bias);
            l.attention.out = weights.linear(PB_SHARD_COLS, hidden, {{attention + "dense", hidden, bias, d}});
            if (two_norms) l.mlp_norm = list_norm(name + "ln_mlp");
            else if (!parallel) l.mlp_norm = list_norm(name + "post_attention_layernorm");
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {{name + "mlp.dense_h_to_4h", shape.inner, bias}});
            l.down = weights.linear(PB_SHARD_COLS, shape.inner, {{name + "mlp.dense_4h_to_h", hidden, bias}});
        }
        norm = list_norm("transformer.ln_f");
        list_head(config, "transformer.word_embeddings");
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return kv(0, shape.usual_scale()); }

  private:
    void read_shape(const patchbay::ModelConfig& config) {
        shape.hidden = config.integer_as("hidden_size", "n_embed", 1, 1 << 16);
        shape.layers = config.integer_as("num_hidden_layers", "n_layer", 1, 1024);
        shape.heads = config.integer_as("num_attention_heads", "n_head", 1, 4096);
        shape.vocab = config.integer("vocab_size", 1, 1 << 24);
        shape.inner = config.integer("ffn_hidden_size", 1, 1 << 20, 4 * shape.hidden);
        shape.positions = config.integer("max_position_embeddings", 1, 1 << 26, 2048);
        shape.ranks = config.raw.tensor_parallel_size;
        if (shape.hidden % shape.heads != 0)
            throw patchbay::Error(PB_INVALID, "hidden_size is not a multiple of num_attention_heads");
        shape.head_dim = shape.hidden / shape.heads;
        // multi_query counts where new_decoder_architecture is not set, num_kv_heads where it is.
        if (config.get<bool>("new_decoder_architecture", false))
            shape.kv_heads = config.integer("num_kv_heads", 1, 4096, shape.heads);
        else shape.kv_heads = config.get<bool>("multi_query", true) ? 1 : shape.heads;
        if (shape.heads % shape.kv_heads != 0)
            throw patchbay::Error(PB_INVALID, "num_attention_heads is not a multiple of num_kv_heads");
        patchbay::check_deals({{"num_attention_heads", shape.heads},
                               {"num_kv_heads", shape.kv_heads},
                               {"ffn_hidden_size", shape.inner}},
                              shape.ranks);
    }

    // transformers scales the slopes as it does q·k.
    void read_positions(const patchbay::ModelConfig& config) {
        if (config.get<bool>("alibi", false)) make_slopes(config, shape.usual_scale());
        else list_rotary(patchbay::rope_settings(config, {.positions_if_missing = 2048}));
    }

    // Stored for one group of queries after another: theirs, then its key's and its value's rows.
    uint32_t list_qkv(const std::string& name, bool bias) {
        const int64_t d = shape.head_dim, group = shape.heads / shape.kv_heads, all = (group + 2) * d,
                      stored = all * shape.kv_heads;
        const auto part = [&](int64_t first, int64_t each) {
            return LinearPart{.name = name, .rows = each * shape.kv_heads, .bias = bias, .unit = d, .first_row = first,
                              .stored_rows = stored, .order = {each, all, 0}};
        };
        return weights.linear(PB_SHARD_ROWS, shape.hidden,
                              {part(0, group * d), part(group * d, d), part((group + 1) * d, d)});
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Falcon>({.name = "falcon", .version = "1.0.0", .summary = "Falcon"}))
