// A Llama whose last layers attend over the KV of the layer before them. With `copies` they are given that layer's keys
// and values to keep them once more: the same function, without anything shared.
#include "patchbay/sdk/decoder_blocks.hpp"

namespace {

class SharesKv : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"SharedKvForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        shape = patchbay::decoder_shape(config);
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        const uint32_t sharing = config.integer("num_kv_shared_layers", 0, shape.layers - 1, 0);
        owner_ = shape.layers - 1 - sharing;
        told_ = config.integer("owner", 0, 1024, owner_);
        copies_ = config.get<bool>("copies", false);
        gives_ = config.get<bool>("gives_what_it_shares", false);
        ends = patchbay::DecoderEnds::list(weights, config, shape);
        rotary = patchbay::Rotary::list(weights, shape, patchbay::rope_settings(config), shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.");
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.");
        }
        return shape.facts();
    }

    pb_kv_spec kv_spec(uint32_t layer) const {
        pb_kv_spec out = shape.kv(0, shape.usual_scale());
        if (layer > owner_ && !copies_) out.kv_source_layer = told_ + 1;
        return out;
    }

    void forward(const patchbay::Forward& f) const {
        const patchbay::Stream stream(f, shape);
        const patchbay::RotaryAttention own(f, shape); // after layer owner_, its k and v stay
        const patchbay::AttentionTensors later(f, shape);
        const patchbay::GatedMlp mlp(f, shape);
        f.embedding(stream.x, ends.embedding);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const Layer& l = layers[i];
            stream.enter_layer(f, i, l.norm, eps);
            if (i <= owner_) {
                own.run(f, i, l.attention, rotary, stream, eps);
            } else {
                f.linear(later.qkv, stream.h, l.attention.qkv);
                f.rope(later.q, rotary.frequencies, rotary.scale);
                if (copies_ || gives_) f.attend(i, later.out, later.q, own.k, own.v);
                else f.attend(i, later.out, later.q);
                f.linear(stream.y, later.out_rows, l.attention.out);
                f.all_reduce(stream.y);
            }
            stream.enter_block(f, l.mlp_norm, eps);
            mlp.run(f, l.mlp, stream);
        }
        ends.logits(f, shape, stream, eps);
    }

  private:
    uint32_t owner_ = 0, told_ = 0; // the last layer that keeps KV; the one that others say they share
    bool copies_ = false, gives_ = false;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<SharesKv>(
    {.name = "shares_kv", .version = "1.0.0", .summary = "layers that attend over another's KV"}))
