// patchbay/sdk/learned_positions.hpp - decoders of the GPT-2 kind: a table of positions, LayerNorm with bias before or
// after each block, an MLP without a gate. For model plugins; what derives from LearnedDecoder lists the weights in
// load_config().
#pragma once
#include <string>
#include <vector>

#include "patchbay/sdk/lm_head.hpp"

namespace patchbay {

class LearnedDecoder : public ListedWeights {
  public:
    static constexpr const char* kNeeds[] = {"layer_norm", "gelu_tanh", "relu", nullptr};

    void forward(const Forward& f) const {
        const int64_t t = f.tokens();
        const pb_tensor x = f.temp({t, shape.hidden}), h = f.temp({t, shape.hidden}), y = f.temp({t, shape.hidden});
        const AttentionTensors a(f, shape);
        const pb_tensor up = f.temp({t, shape.inner / shape.ranks});

        f.embedding(x, embedding);
        f.embed_positions(y, positions);
        f.add(x, y);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const Layer& l = layers[i];
            const pb_tensor& in = norm_before ? h : x;
            if (norm_before) normalise(f, h, x, l.norm);
            f.linear(a.qkv, in, l.qkv);
            f.attend(i, a.out, a.q, a.k, a.v);
            f.linear(y, a.out_rows, l.out);
            f.all_reduce(y);
            f.add(x, y);
            if (norm_before) normalise(f, h, x, l.mlp_norm);
            else normalise(f, x, x, l.norm);
            f.linear(up, in, l.up);
            if (relu) f.relu(up);
            else f.gelu_tanh(up);
            f.linear(y, up, l.down);
            f.all_reduce(y);
            f.add(x, y);
            if (!norm_before) normalise(f, x, x, l.mlp_norm);
        }
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        const pb_tensor last = f.temp({rows, shape.hidden});
        f.gather_rows(last, x, f.raw.logit_rows);
        if (final_norm) normalise(f, last, last, norm);
        head.run(f, last);
    }

  protected:
    struct Norm { // indices of weights
        uint32_t weight, bias;
    };
    struct Layer { // likewise
        Norm norm, mlp_norm;
        uint32_t qkv, out, up, down;
    };

    Norm list_norm(const std::string& name) {
        const uint32_t weight = weights.vector(shape.hidden, name + ".weight");
        return {weight, weights.vector(shape.hidden, name + ".bias")};
    }
    // The last to be listed. table: the name of the token table, which the head is tied to where config.json says so.
    void list_head(const ModelConfig& config, const std::string& table) {
        const bool tied = config.get<bool>("tie_word_embeddings", true);
        head = LmHead::list(weights, shape, tied ? table : "lm_head", tied ? std::optional(embedding) : std::nullopt);
    }

    DecoderShape shape;
    float eps = 1e-5f;
    bool norm_before = true, final_norm = true, relu = false;
    uint32_t embedding = 0, positions = 0;
    LmHead head;
    Norm norm{};
    std::vector<Layer> layers;

  private:
    void normalise(const Forward& f, const pb_tensor& out, const pb_tensor& x, const Norm& n) const {
        f.layer_norm(out, x, n.weight, n.bias, eps);
    }
};

}  // namespace patchbay
