// gpt_neox - GPT-NeoX and Pythia: LayerNorm, q, k and v of each head stored together, rotary positions on a part of a
// head, attention and MLP on the same input or one after the other.
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

using patchbay::LinearPart;

class GptNeox : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"GPTNeoXForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kGptNeoxTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kGptNeoxTables);
        shape = patchbay::decoder_shape(config, {.positions = 2048});
        if (shape.kv_heads != shape.heads || shape.q_size() != shape.hidden)
            throw patchbay::Error(PB_UNSUPPORTED, "num_key_value_heads and head_dim are not read by GPT-NeoX");
        eps = patchbay::norm_epsilon(config, "layer_norm_eps", 1e-5f);
        act = patchbay::activation(config, "hidden_act", patchbay::Activation::kGeluErf);
        order = config.get<bool>("use_parallel_residual", true) ? Order::kParallel : Order::kBefore;
        const bool bias = config.get<bool>("attention_bias", true);

        const int64_t hidden = shape.hidden, d = shape.head_dim;
        const auto part = config.get<double>("rotary_pct", 0.25);
        const std::string ropes = config.has_section("rope_scaling") ? "rope_scaling." : "rope_parameters.";
        // Beside these, transformers reads partial_rotary_factor in the map of positions alone.
        if (!config.find(ropes + "partial_rotary_factor") && config.get<double>("partial_rotary_factor", part) != part)
            throw patchbay::Error(PB_UNSUPPORTED, "partial_rotary_factor is not rotary_pct");
        embedding = weights.embedding({"gpt_neox.embed_in", shape.vocab}, hidden);
        list_rotary(patchbay::rope_settings(config, {.theta = "rotary_emb_base",
                                                     .positions_if_missing = 2048,
                                                     .turned = patchbay::RopeKeys::Turned::kPart,
                                                     .part_if_missing = part}));
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "gpt_neox.layers." + std::to_string(i) + ".";
            const auto third = [&](int64_t which) { // of each head
                return LinearPart{.name = name + "attention.query_key_value", .rows = hidden, .bias = bias, .unit = d,
                                  .first_row = which * d, .stored_rows = 3 * hidden, .order = {d, 3 * d, 0}};
            };
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + "input_layernorm");
            l.attention.qkv = weights.linear(PB_SHARD_ROWS, hidden, {third(0), third(1), third(2)});
            l.attention.out = weights.linear(PB_SHARD_COLS, hidden, {{name + "attention.dense", hidden, bias, d}});
            l.mlp_norm = list_norm(name + "post_attention_layernorm");
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {{name + "mlp.dense_h_to_4h", shape.inner, true}});
            l.down = weights.linear(PB_SHARD_COLS, shape.inner, {{name + "mlp.dense_4h_to_h", hidden, true}});
        }
        norm = list_norm("gpt_neox.final_layer_norm");
        list_head(config, "gpt_neox.embed_in", false, "embed_out");
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return kv(0, shape.usual_scale()); }
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::model<GptNeox>({.name = "gpt_neox", .version = "1.0.0", .summary = "GPT-NeoX and Pythia"}))
