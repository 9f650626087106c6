// gpt_oss - OpenAI's gpt-oss: every head has an attention sink, every second layer a window; the MLPs are mixtures,
// whose experts have biases and are gated by a clamped SwiGLU.
#include "patchbay/sdk/experts.hpp"

#include "keys.hpp"

namespace {

class GptOss : public patchbay::ExpertDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"GptOssForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kGptOssTables}};
    static constexpr const char* kNeeds[] = {"top_k", "expert_linear", "weighted_sum", "swiglu_oai", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kGptOssTables);
        if (!config.is_null("num_key_value_heads")) config.require<int64_t>("num_key_value_heads");
        shape = patchbay::decoder_shape(config, {.head_dim = 64, .positions = kPositions});
        read_experts(config);
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        windows_ = patchbay::layer_windows(config, shape.layers, patchbay::sliding_window(config, 128),
                                           [](uint32_t i) { return i % 2 == 0; });
        if (!config.has_section("rope_scaling") && !config.has_section("rope_parameters"))
            throw patchbay::Error(PB_UNSUPPORTED, "config.json has neither rope_scaling nor rope_parameters");

        const bool bias = config.get<bool>("attention_bias", true);
        ends = patchbay::DecoderEnds::list(weights, config, shape);
        const patchbay::RopeSettings rope =
            patchbay::rope_settings(config, {.theta_if_missing = 150000, .positions_if_missing = kPositions});
        rotary = patchbay::Rotary::list(weights, shape, rope, shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {bias, bias});
            const uint32_t heads = shape.heads / shape.ranks;
            sinks_.push_back(weights.part_of_vector(heads, name + "self_attn.sinks",
                                                    int64_t{heads} * config.raw.rank, shape.heads));
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            mixtures.push_back(list_experts(name + "mlp."));
        }
        return ends.facts(shape);
    }

    pb_kv_spec kv_spec(uint32_t layer) const {
        pb_kv_spec out = shape.kv(windows_[layer], shape.usual_scale());
        out.sinks = 1 + sinks_[layer];
        return out;
    }

  private:
    static constexpr uint32_t kPositions = 131072; // where config.json does not say

    void read_experts(const patchbay::ModelConfig& config) {
        experts = patchbay::expert_shape(config, 128, 4);
        experts.inner = shape.inner;
        experts.clamped = {config.get<float>("swiglu_alpha", 1.702f), config.get<float>("swiglu_limit", 7)};
        if (!(experts.clamped->limit > 0))
            throw patchbay::Error(PB_UNSUPPORTED, "swiglu_limit is " + std::to_string(experts.clamped->limit) +
                                                      ", expected more than 0");
    }

    // gate_up_proj has the rows of gate and up in turn.
    patchbay::ExpertWeights list_experts(const std::string& block) {
        const int64_t inner = experts.inner;
        const float share = static_cast<float>(experts.chosen) / static_cast<float>(experts.count);
        const auto name = [&](uint32_t expert, const char* matrix) {
            return block + "experts." + std::to_string(expert) + "." + matrix;
        };
        const auto every_second = [&](uint32_t expert, int64_t first) {
            return patchbay::LinearPart{.name = name(expert, "gate_up_proj"), .rows = inner, .bias = true,
                                        .first_row = first, .stored_rows = 2 * inner, .order = {1, 2, 0}};
        };
        patchbay::ExpertWeights out;
        out.router = weights.router(shape.hidden, {block + "router", experts.count, true});
        out.gate_up = weights.count();
        for (uint32_t e = 0; e < experts.count; ++e)
            weights.expert(share, PB_SHARD_ROWS, shape.hidden, {every_second(e, 0), every_second(e, 1)});
        out.down = weights.count();
        for (uint32_t e = 0; e < experts.count; ++e)
            weights.expert(share, PB_SHARD_COLS, inner, {{name(e, "down_proj"), shape.hidden, true}});
        return out;
    }

    std::vector<uint32_t> windows_, sinks_; // by layer; sinks_: indices of weights
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<GptOss>(
    {.name = "gpt_oss", .version = "1.0.0", .summary = "OpenAI's gpt-oss, mixtures of experts with attention sinks"}))
