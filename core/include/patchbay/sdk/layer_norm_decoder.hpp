// patchbay/sdk/layer_norm_decoder.hpp - decoders with LayerNorm: GPT-2's kind with a table of positions, GPT-NeoX's
// with rotary ones, Falcon's with slopes (ALiBi); the MLP with a gate or without; the blocks after one another or both
// on one input. For model plugins; what derives from LayerNormDecoder lists the weights in load_config().
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "patchbay/sdk/decoder_blocks.hpp"

namespace patchbay {

enum class Activation { kGeluTanh, kGeluErf, kRelu, kSilu };

// By its name in config.json; missing: what it is where the key is not there.
inline Activation activation(const ModelConfig& config, std::string_view key, Activation missing) {
    if (!config.find(key) && !config.is_null(key)) return missing;
    const std::string_view name = config.one_of(
        key, {"gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "silu", "swish"});
    if (name == "gelu") return Activation::kGeluErf;
    if (name == "relu") return Activation::kRelu;
    return name == "silu" || name == "swish" ? Activation::kSilu : Activation::kGeluTanh;
}

inline void activate(const Forward& f, const pb_tensor& x, Activation by) {
    switch (by) {
        case Activation::kGeluTanh: return f.gelu_tanh(x);
        case Activation::kGeluErf: return f.gelu_erf(x);
        case Activation::kRelu: return f.relu(x);
        case Activation::kSilu: return f.silu(x);
    }
}

// The slopes of all heads of a model with ALiBi: Press et al., "Train Short, Test Long", 2021; where their number
// is no power of two, as the code of the paper has them.
inline std::vector<float> alibi_slopes(uint32_t heads) {
    uint32_t power = 1;
    while (2 * power <= heads) power *= 2;
    std::vector<float> out;
    for (uint32_t h = 0; h < heads; ++h)
        out.push_back(static_cast<float>(h < power ? std::exp2(-8.0 * (h + 1) / power)
                                                   : std::exp2(-4.0 * (2 * (h - power) + 1) / power)));
    return out;
}

class LayerNormDecoder : public ListedWeights {
  public:
    static constexpr const char* kNeeds[] = {"layer_norm", "gelu_tanh", "gelu_erf", "relu", "silu", "scale", nullptr};

    void forward(const Forward& f) const {
        const Stream stream(f, shape);
        Stream apart = stream; // of the MLP where it has a norm of its own beside the attention's
        if (order == Order::kParallel && layers[0].mlp_norm) apart.h = f.temp({f.tokens(), shape.hidden});
        const AttentionTensors attention(f, shape);
        std::optional<GatedMlp> gated;
        pb_tensor up{};
        if (layers[0].mlp.gate_up) gated.emplace(f, shape);
        else up = f.temp({f.tokens(), shape.inner / shape.ranks});

        embed(f, stream);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const Layer& l = layers[i];
            if (order != Order::kAfter) normalise(f, stream.h, stream.x, *l.norm);
            if (order == Order::kParallel && l.mlp_norm) normalise(f, apart.h, stream.x, *l.mlp_norm);
            attend(f, i, attention, order == Order::kAfter ? stream.x : stream.h, stream.y);
            f.add(stream.x, stream.y);
            if (order == Order::kAfter) normalise(f, stream.x, stream.x, *l.norm);
            if (order == Order::kBefore) normalise(f, stream.h, stream.x, *l.mlp_norm);
            if (order == Order::kAfter) apart.h = stream.x;
            if (gated) gated->run(f, l.mlp, apart);
            else plain_mlp(f, l, apart.h, up, stream.y);
            f.add(stream.x, stream.y);
            if (order == Order::kAfter) normalise(f, stream.x, stream.x, *l.mlp_norm);
        }
        give_logits(f, stream.x);
    }

  protected:
    enum class Order { kBefore, kAfter, kParallel }; // norms before the blocks or after them; both blocks on one input

    struct Norm { // indices of weights
        uint32_t weight, bias;
    };
    struct Layer { // likewise
        std::optional<Norm> norm, mlp_norm; // mlp_norm, of kParallel: none: the MLP reads what attention does
        AttentionWeights attention;
        MlpWeights mlp;             // with a gate; else:
        uint32_t up = 0, down = 0;
        bool turns = true;          // q and k, where the model is rotary
    };

    // name.weight and, where the checkpoint has it, name.bias.
    enum class Bias { kStored, kNone };
    Norm list_norm(const std::string& name, Bias bias = Bias::kStored) {
        const uint32_t weight = weights.vector(shape.hidden, name + ".weight");
        if (bias == Bias::kStored) return {weight, weights.vector(shape.hidden, name + ".bias")};
        if (!zeros_) zeros_ = weights.computed(std::vector<float>(shape.hidden, 0.0f));
        return {weight, *zeros_};
    }
    // Rotary positions on the part of a head that config.json says.
    void list_rotary(const RopeSettings& settings) {
        rotary = Rotary::list(weights, shape, settings, turned_elements(settings, shape.head_dim));
    }
    // Of a model whose scores depend on distance: this rank's heads, times `factor`.
    void make_slopes(const ModelConfig& config, float factor) {
        const std::vector<float> all = alibi_slopes(shape.heads);
        const uint32_t own = shape.heads / shape.ranks, first = own * config.raw.rank;
        for (uint32_t h = 0; h < own; ++h) slopes_.push_back(all[first + h] * factor);
    }
    // The last to be listed. table: the name of the token table, which is the head where the two are tied.
    void list_head(const ModelConfig& config, const std::string& table, bool usually_tied = true,
                   const std::string& name = "lm_head", bool bias = false) {
        const bool tied = config.get<bool>("tie_word_embeddings", usually_tied);
        DecoderShape narrow = shape;
        if (width) narrow.hidden = width;
        head = LmHead::list(weights, narrow, tied ? table : name, tied ? std::optional(embedding) : std::nullopt, bias);
    }

    pb_kv_spec kv(uint32_t window, float scale) const {
        pb_kv_spec out = shape.kv(window, scale);
        out.slopes = slopes_.empty() ? nullptr : slopes_.data();
        return out;
    }

    DecoderShape shape;
    float eps = 1e-5f, logit_scale = 1;
    Order order = Order::kBefore;
    Activation act = Activation::kGeluTanh;
    uint32_t embedding = 0;
    std::optional<uint32_t> positions; // the table
    std::optional<Rotary> rotary;
    uint32_t width = 0, project_in = 0, project_out = 0; // of the token table, where it is not that of the layers
    LmHead head;
    std::optional<Norm> norm; // the last
    std::vector<Layer> layers;

  private:
    void embed(const Forward& f, const Stream& stream) const {
        if (width) {
            const pb_tensor narrow = f.temp({f.tokens(), width});
            f.embedding(narrow, embedding);
            f.linear(stream.x, narrow, project_in);
        } else {
            f.embedding(stream.x, embedding);
        }
        if (!positions) return;
        f.embed_positions(stream.y, *positions);
        f.add(stream.x, stream.y);
    }

    void attend(const Forward& f, uint32_t layer, const AttentionTensors& a, const pb_tensor& in,
                const pb_tensor& out) const {
        const Layer& l = layers[layer];
        f.linear(a.qkv, in, l.attention.qkv);
        if (rotary && l.turns) {
            f.rope(a.q, rotary->frequencies, rotary->scale);
            f.rope(a.k, rotary->frequencies, rotary->scale);
        }
        f.attend(layer, a.out, a.q, a.k, a.v);
        f.linear(out, a.out_rows, l.attention.out);
        f.all_reduce(out);
    }

    void plain_mlp(const Forward& f, const Layer& l, const pb_tensor& in, const pb_tensor& up,
                   const pb_tensor& out) const {
        f.linear(up, in, l.up);
        activate(f, up, act);
        f.linear(out, up, l.down);
        f.all_reduce(out);
    }

    void give_logits(const Forward& f, const pb_tensor& x) const {
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        const pb_tensor last = f.temp({rows, shape.hidden});
        f.gather_rows(last, x, f.raw.logit_rows);
        if (norm) normalise(f, last, last, *norm);
        if (width) {
            const pb_tensor narrow = f.temp({rows, width});
            f.linear(narrow, last, project_out);
            head.run(f, narrow);
        } else {
            head.run(f, last);
        }
        if (logit_scale != 1) f.scale(f.raw.logits, logit_scale);
    }

    void normalise(const Forward& f, const pb_tensor& out, const pb_tensor& x, const Norm& n) const {
        f.layer_norm(out, x, n.weight, n.bias, eps);
    }

    std::optional<uint32_t> zeros_; // a bias that no checkpoint holds
    std::vector<float> slopes_;     // of this rank's heads
};

}  // namespace patchbay
