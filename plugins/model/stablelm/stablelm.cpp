// stablelm - StableLM: Llama's layers with LayerNorm, rotary positions on a part of each head.
#include "patchbay/sdk/layer_norm_decoder.hpp"

#include "keys.hpp"

namespace {

class StableLm : public patchbay::LayerNormDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"StableLmForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kStableLmTables}};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kStableLmTables);
        shape = patchbay::decoder_shape(config, {.positions = 4096});
        eps = patchbay::norm_epsilon(config, "layer_norm_eps", 1e-5f);
        config.one_of("hidden_act", {"silu"});
        const bool parallel = config.get<bool>("use_parallel_residual", false);
        order = parallel ? Order::kParallel : Order::kBefore;
        const bool bias = config.get<bool>("use_qkv_bias", false);

        embedding = weights.embedding({"model.embed_tokens", shape.vocab}, shape.hidden);
        list_rotary(patchbay::rope_settings(config, {.positions_if_missing = 4096,
                                                     .turned = patchbay::RopeKeys::Turned::kPart,
                                                     .part_if_missing = 0.25}));
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = list_norm(name + "input_layernorm");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {.qkv = bias});
            if (!parallel) l.mlp_norm = list_norm(name + "post_attention_layernorm");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.");
        }
        norm = list_norm("model.norm");
        list_head(config, "model.embed_tokens", false);
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t) const { return kv(0, shape.usual_scale()); }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<StableLm>({.name = "stablelm", .version = "1.0.0", .summary = "StableLM"}))
