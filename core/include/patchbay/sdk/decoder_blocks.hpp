// patchbay/sdk/decoder_blocks.hpp - the blocks that decoders of the Llama kind are put together from: what is before
// and after the layers, rotary positions, attention, the gated MLP. Each lists its weights and computes. For model
// plugins.
#pragma once
#include <algorithm>
#include <string>

#include "patchbay/sdk/decoder.hpp"
#include "patchbay/sdk/lm_head.hpp"
#include "patchbay/sdk/rope.hpp"
#include "patchbay/sdk/weight_list.hpp"

namespace patchbay {

// The residual stream, and what blocks read and write beside it; (T, hidden) each.
struct Stream {
    Stream(const Forward& f, const DecoderShape& s)
        : x(f.temp({f.tokens(), s.hidden})), h(f.temp({f.tokens(), s.hidden})), y(f.temp({f.tokens(), s.hidden})) {}

    // h of a layer's first block: the norm of the stream with the layer before.
    void enter_layer(const Forward& f, uint32_t layer, uint32_t norm, float eps) const {
        if (layer == 0) f.rms_norm(h, x, norm, eps);
        else enter_block(f, norm, eps);
    }
    // h of a next block: the norm of the stream with the block before.
    void enter_block(const Forward& f, uint32_t norm, float eps) const { f.add_rms_norm(h, x, y, norm, eps); }

    pb_tensor x; // the stream
    pb_tensor h; // normed input of a block
    pb_tensor y; // output of a block
};

struct EndNames {
    std::string root = "model.", head = "lm_head";
    float norm_offset = 0;     // of the last norm
    bool usually_tied = false; // where config.json does not say
    std::string norm = "norm";
};

// The token table, the last norm and the lm head. Listed first, so that any other weight's index is above 0.
struct DecoderEnds {
    static DecoderEnds list(WeightList& weights, const ModelConfig& config, const DecoderShape& s,
                            const EndNames& names = {}) {
        DecoderEnds out;
        out.embedding = weights.embedding({names.root + "embed_tokens", s.vocab}, s.hidden);
        out.norm = weights.vector(s.hidden, names.root + names.norm + ".weight", names.norm_offset);
        const bool tied = config.get<bool>("tie_word_embeddings", names.usually_tied);
        out.head = LmHead::list(weights, s, tied ? names.root + "embed_tokens" : names.head,
                                tied ? std::optional(out.embedding) : std::nullopt);
        return out;
    }

    // Of a model whose first layer gets the token table's rows and whose logits are the head's, with nothing done to
    // either: it gives its hidden states.
    pb_model_facts facts(const DecoderShape& s) const {
        pb_model_facts out = s.facts();
        out.flags = PB_MODEL_GIVES_HIDDEN;
        out.embedding = embedding;
        out.lm_head = head.weight;
        return out;
    }

    // Logits of the rows that sample, from the stream with the last block; and hidden states where they are wanted.
    void logits(const Forward& f, const DecoderShape& s, const Stream& stream, float eps) const {
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (f.wants_hidden()) {
            f.add(stream.x, stream.y);
            f.rms_norm(f.raw.hidden, stream.x, norm, eps);
            if (rows > 0) head.run_rows(f, s, f.raw.hidden);
            return;
        }
        if (rows == 0) return;
        f.add(stream.x, stream.y);
        const pb_tensor last = f.temp({rows, s.hidden}), normed = f.temp({rows, s.hidden});
        f.gather_rows(last, stream.x, f.raw.logit_rows);
        f.rms_norm(normed, last, norm, eps);
        head.run(f, normed);
    }

    uint32_t embedding = 0, norm = 0;
    LmHead head;
};

// Rotary positions of the first `turned` elements of a head.
struct Rotary {
    // Lowers s.positions to what the frequencies hold for, or raises it.
    static Rotary list(WeightList& weights, DecoderShape& s, const RopeSettings& settings, uint32_t turned) {
        s.positions = std::min(std::max(s.positions, settings.reach), settings.max_positions);
        return {weights.computed(rope_frequencies(settings, turned)), settings.cos_scale};
    }

    uint32_t frequencies = 0;
    float scale = 1;
};

struct AttentionBiases {
    bool qkv = false, out = false;
};

// Indices of an attention block's weights; the norms of q's and k's heads: 0: none.
struct AttentionWeights {
    // name: "model.layers.0.self_attn."
    static AttentionWeights list(WeightList& weights, const DecoderShape& s, const std::string& name,
                                 AttentionBiases bias = {}) {
        const int64_t d = s.head_dim;
        AttentionWeights out;
        out.qkv = weights.linear(PB_SHARD_ROWS, s.hidden,
                                 {{name + "q_proj", s.q_size(), bias.qkv, d},
                                  {name + "k_proj", s.kv_size(), bias.qkv, d},
                                  {name + "v_proj", s.kv_size(), bias.qkv, d}});
        out.out = weights.linear(PB_SHARD_COLS, s.q_size(), {{name + "o_proj", s.hidden, bias.out, d}});
        return out;
    }
    void list_head_norms(WeightList& weights, const DecoderShape& s, const std::string& name, float offset = 0) {
        q_norm = weights.vector(s.head_dim, name + "q_norm.weight", offset);
        k_norm = weights.vector(s.head_dim, name + "k_norm.weight", offset);
    }

    uint32_t qkv = 0, out = 0, q_norm = 0, k_norm = 0;
};

// What attention computes with, for all layers of a step.
struct RotaryAttention : AttentionTensors {
    using AttentionTensors::AttentionTensors;

    // stream.y from stream.h
    void run(const Forward& f, uint32_t layer, const AttentionWeights& w, const Rotary& rotary, const Stream& stream,
             float eps) const {
        f.linear(qkv, stream.h, w.qkv);
        if (w.q_norm) f.rms_norm(q, q, w.q_norm, eps);
        if (w.k_norm) f.rms_norm(k, k, w.k_norm, eps);
        f.rope(q, rotary.frequencies, rotary.scale);
        f.rope(k, rotary.frequencies, rotary.scale);
        finish(f, layer, w, stream);
    }
    // The same in a layer without positions.
    void run_in_place(const Forward& f, uint32_t layer, const AttentionWeights& w, const Stream& stream) const {
        f.linear(qkv, stream.h, w.qkv);
        finish(f, layer, w, stream);
    }

  private:
    void finish(const Forward& f, uint32_t layer, const AttentionWeights& w, const Stream& stream) const {
        f.attend(layer, out, q, k, v);
        f.linear(stream.y, out_rows, w.out);
        f.all_reduce(stream.y);
    }
};

// Indices of a gated MLP's weights.
struct MlpWeights {
    // name: "model.layers.0.mlp."
    static MlpWeights list(WeightList& weights, const DecoderShape& s, const std::string& name, bool bias = false) {
        MlpWeights out;
        out.gate_up = weights.linear(PB_SHARD_ROWS, s.hidden,
                                     {{name + "gate_proj", s.inner, bias}, {name + "up_proj", s.inner, bias}});
        out.down = weights.linear(PB_SHARD_COLS, s.inner, {{name + "down_proj", s.hidden, bias}});
        return out;
    }

    uint32_t gate_up = 0, down = 0;
};

// What gated MLPs compute with, for all layers of a step.
struct GatedMlp {
    GatedMlp(const Forward& f, const DecoderShape& s, pb_gate by = PB_GATE_SILU) : gate(by) {
        if (f.ops.gated_mlp && gate != PB_GATE_GELU_ERF) return;
        gate_up = f.temp({f.tokens(), 2 * int64_t{s.inner} / s.ranks});
        gated = f.temp({f.tokens(), int64_t{s.inner} / s.ranks});
    }

    // stream.y from stream.h
    void run(const Forward& f, const MlpWeights& w, const Stream& stream) const {
        if (gate == PB_GATE_GELU_ERF || !f.gated_mlp(stream.y, stream.h, w.gate_up, w.down, gate)) {
            f.linear(gate_up, stream.h, w.gate_up);
            if (gate == PB_GATE_SILU) f.silu_mul(gated, gate_up);
            else if (gate == PB_GATE_GELU_TANH) f.gelu_tanh_mul(gated, gate_up);
            else f.gelu_erf_mul(gated, gate_up);
            f.linear(stream.y, gated, w.down);
        }
        f.all_reduce(stream.y);
    }

    pb_gate gate;
    pb_tensor gate_up{}, gated{}; // where there is no op for the whole
};

// Decoders whose layers are a rotary attention and a gated SiLU MLP, each after a norm: what derives from it lists the
// weights in load_config().
class GatedDecoder : public ListedWeights {
  public:
    void forward(const Forward& f) const {
        const GatedMlp mlp(f, shape);
        run(f, [&](uint32_t layer, const Stream& stream) { mlp.run(f, layers[layer].mlp, stream); });
    }

  protected:
    struct Layer { // norm, mlp_norm: indices of weights
        uint32_t norm = 0, mlp_norm = 0;
        AttentionWeights attention;
        MlpWeights mlp;
    };

    // mlp(layer, stream): stream.y from stream.h
    template <class Mlp>
    void run(const Forward& f, Mlp&& mlp) const {
        const Stream stream(f, shape);
        const RotaryAttention attention(f, shape);
        f.embedding(stream.x, ends.embedding);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const Layer& l = layers[i];
            stream.enter_layer(f, i, l.norm, eps);
            attention.run(f, i, l.attention, rotary, stream, eps);
            stream.enter_block(f, l.mlp_norm, eps);
            mlp(i, stream);
        }
        ends.logits(f, shape, stream, eps);
    }

    DecoderShape shape;
    float eps = 0;
    DecoderEnds ends;
    Rotary rotary;
    std::vector<Layer> layers;
};

}  // namespace patchbay
