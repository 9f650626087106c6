// opt - OPT: LayerNorm with bias before or after each block, learned positions that begin at row 2, ReLU.
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

class Opt : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"OPTForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kOptTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kOptTables);
        shape.hidden = config.integer("hidden_size", 1, 1 << 16);
        shape.inner = config.integer("ffn_dim", 1, 1 << 20);
        shape.layers = config.integer("num_hidden_layers", 1, 1024);
        shape.heads = shape.kv_heads = config.integer("num_attention_heads", 1, 4096);
        shape.vocab = config.integer("vocab_size", 1, 1 << 24);
        shape.positions = config.integer("max_position_embeddings", 1, 1 << 26, 2048);
        shape.ranks = config.raw.tensor_parallel_size;
        if (shape.hidden % shape.heads != 0)
            throw patchbay::Error(PB_INVALID, "hidden_size is not a multiple of num_attention_heads");
        patchbay::check_deals({{"num_attention_heads", shape.heads}, {"ffn_dim", shape.inner}}, shape.ranks);
        shape.head_dim = shape.hidden / shape.heads;
        act = patchbay::activation(config, "activation_function", patchbay::Activation::kRelu);
        config.one_of("layer_norm_elementwise_affine", {"true"});
        width = config.integer("word_embed_proj_dim", 1, 1 << 20, shape.hidden);
        if (width == shape.hidden) width = 0;
        const bool before = config.get<bool>("do_layer_norm_before", true);
        order = before ? Order::kBefore : Order::kAfter;
        const bool final_norm = before && !config.get<bool>("_remove_final_layer_norm", false);

        const bool bias = config.get<bool>("enable_bias", true);
        const int64_t hidden = shape.hidden, d = shape.head_dim;
        const std::string root = "model.decoder.";
        embedding = weights.embedding({root + "embed_tokens", shape.vocab}, width ? width : hidden);
        if (width) {
            project_in = weights.linear(PB_SHARD_NONE, width, {{root + "project_in", hidden}});
            project_out = weights.linear(PB_SHARD_NONE, hidden, {{root + "project_out", width}});
        }
        const int64_t rows = shape.positions;
        positions = weights.embedding(
            {root + "embed_positions", rows, false, 0, kFirstPosition, rows + kFirstPosition}, hidden);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = root + "layers." + std::to_string(i) + ".", attention = name + "self_attn.";
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + "self_attn_layer_norm");
            l.attention.qkv = weights.linear(PB_SHARD_ROWS, hidden, {{attention + "q_proj", hidden, bias, d},
                                                           {attention + "k_proj", hidden, bias, d},
                                                           {attention + "v_proj", hidden, bias, d}});
            l.attention.out = weights.linear(PB_SHARD_COLS, hidden, {{attention + "out_proj", hidden, bias, d}});
            l.mlp_norm = list_norm(name + "final_layer_norm"); // so called in each layer
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {{name + "fc1", shape.inner, bias}});
            l.down = weights.linear(PB_SHARD_COLS, shape.inner, {{name + "fc2", hidden, bias}});
        }
        if (final_norm) norm = list_norm(root + "final_layer_norm");
        list_head(config, root + "embed_tokens");
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return shape.kv(0, shape.usual_scale()); }

  private:
    static constexpr int64_t kFirstPosition = 2; // the rows before it stand for padding
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Opt>({.name = "opt", .version = "1.0.0", .summary = "OPT"}))
