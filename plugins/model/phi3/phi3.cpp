// phi3 - Phi 3, 3.5 and 4 (mini, medium): Llama's layers, stored with q, k, v in one matrix and gate, up in another;
// rotary positions on a part of each head.
#include "patchbay/sdk/decoder_blocks.hpp"

#include "keys.hpp"

namespace {

using patchbay::LinearPart;

class Phi3 : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"Phi3ForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kPhi3Tables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kPhi3Tables);
        shape = patchbay::decoder_shape(config, {.positions = 4096});
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        window_ = patchbay::sliding_window(config, 0);
        config.one_of("hidden_act", {"silu"});
        const patchbay::RopeSettings rope = patchbay::rope_settings(
            config, {.positions_if_missing = 4096,
                     .turned = patchbay::RopeKeys::Turned::kPart,
                     .original_positions = config.get<double>("original_max_position_embeddings", 4096)});
        if (rope.scaling != patchbay::RopeScaling::kNone && rope.scaling != patchbay::RopeScaling::kLongrope)
            throw patchbay::Error(PB_UNSUPPORTED, "rope_type of Phi 3 is default or longrope (su)");

        ends = patchbay::DecoderEnds::list(weights, config, shape);
        rotary = patchbay::Rotary::list(weights, shape, rope, patchbay::turned_elements(rope, shape.head_dim));
        const int64_t inner = shape.inner, q = shape.q_size(), kv = shape.kv_size(), d = shape.head_dim,
                      all = q + 2 * kv;
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".", qkv = name + "self_attn.qkv_proj",
                              gate_up = name + "mlp.gate_up_proj";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention.qkv = weights.linear(PB_SHARD_ROWS, shape.hidden,
                                             {LinearPart{qkv, q, false, d, 0, all},
                                              LinearPart{qkv, kv, false, d, q, all},
                                              LinearPart{qkv, kv, false, d, q + kv, all}});
            l.attention.out = weights.linear(PB_SHARD_COLS, q, {{name + "self_attn.o_proj", shape.hidden, false, d}});
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp.gate_up = weights.linear(PB_SHARD_ROWS, shape.hidden,
                                           {LinearPart{gate_up, inner, false, 0, 0, 2 * inner},
                                            LinearPart{gate_up, inner, false, 0, inner, 2 * inner}});
            l.mlp.down = weights.linear(PB_SHARD_COLS, inner, {{name + "mlp.down_proj", shape.hidden}});
        }
        return ends.facts(shape);
    }

    pb_kv_spec kv_spec(uint32_t) const { return shape.kv(window_, shape.usual_scale()); }

  private:
    uint32_t window_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Phi3>({.name = "phi3", .version = "1.0.0", .summary = "Phi 3, 3.5 and 4"}))
