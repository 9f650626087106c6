// phi - Phi 1, 1.5 and 2: LayerNorm, attention and MLP on the same input, biases everywhere, rotary positions on a part
// of each head.
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

class Phi : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"PhiForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kPhiTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kPhiTables);
        shape = patchbay::decoder_shape(config, {.positions = 2048});
        eps = patchbay::norm_epsilon(config, "layer_norm_eps", 1e-5f);
        act = patchbay::activation(config, "hidden_act", patchbay::Activation::kGeluTanh);
        order = Order::kParallel;

        const int64_t hidden = shape.hidden, d = shape.head_dim;
        embedding = weights.embedding({"model.embed_tokens", shape.vocab}, hidden);
        list_rotary(patchbay::rope_settings(config, {.positions_if_missing = 2048,
                                                     .turned = patchbay::RopeKeys::Turned::kPart,
                                                     .part_if_missing = 0.5}));
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", attention = name + "self_attn.";
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + "input_layernorm");
            l.attention.qkv = weights.linear(PB_SHARD_ROWS, hidden, {{attention + "q_proj", shape.q_size(), true, d},
                                                                     {attention + "k_proj", shape.kv_size(), true, d},
                                                                     {attention + "v_proj", shape.kv_size(), true, d}});
            l.attention.out = weights.linear(PB_SHARD_COLS, shape.q_size(), {{attention + "dense", hidden, true, d}});
            l.up = weights.linear(PB_SHARD_ROWS, hidden, {{name + "mlp.fc1", shape.inner, true}});
            l.down = weights.linear(PB_SHARD_COLS, shape.inner, {{name + "mlp.fc2", hidden, true}});
        }
        norm = list_norm("model.final_layernorm");
        list_head(config, "model.embed_tokens", false, "lm_head", true);
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return kv(0, shape.usual_scale()); }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Phi>({.name = "phi", .version = "1.0.0", .summary = "Phi 1, 1.5 and 2"}))
