// patchbay/sdk/experts.hpp - the MLP of a mixture of experts: a router chooses k of them for each token, whose gated
// outputs are added by weight. For model plugins; they need the ops in kExpertOps.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "patchbay/sdk/decoder_blocks.hpp"

namespace patchbay {

struct ClampedSwiglu { // as the op swiglu_oai
    float alpha = 0, limit = 0;
};

struct ExpertShape {
    uint32_t count = 0, chosen = 0, inner = 0; // inner: of one expert
    TopK weights = TopK::kSumsToOne;
    std::optional<ClampedSwiglu> clamped = std::nullopt; // their gate; none: SiLU
};

// count, chosen: what is meant where config.json does not say.
inline ExpertShape expert_shape(const ModelConfig& config, uint32_t count, uint32_t chosen) {
    ExpertShape e;
    e.count = config.integer_as("num_experts", "num_local_experts", 1, 4096, count);
    e.chosen = config.integer("num_experts_per_tok", 1, 4096, chosen);
    if (e.chosen > e.count)
        throw Error(PB_INVALID, "num_experts_per_tok is " + std::to_string(e.chosen) + ", but there are " +
                                    std::to_string(e.count) + " experts");
    return e;
}

// Which layers have an MLP and no mixture.
inline std::vector<bool> dense_layers(const ModelConfig& config, uint32_t layers) {
    const uint32_t step = config.integer("decoder_sparse_step", 1, 1024, 1);
    std::vector<bool> out;
    for (uint32_t i = 0; i < layers; ++i) out.push_back((i + 1) % step != 0);
    for (const uint32_t i : listed_layers(config, "mlp_only_layers", layers)) out[i] = true;
    return out;
}

struct ExpertNames { // "model.layers.0.mlp.": then router, or experts.<i>.<gate>
    std::string block;
    const char *router, *gate, *up, *down;
};

struct ExpertWeights { // indices; the experts' are consecutive
    uint32_t router = 0, gate_up = 0, down = 0;

    static ExpertWeights list(WeightList& weights, const ExpertShape& e, int64_t hidden, const ExpertNames& names) {
        const auto expert = [&](uint32_t i, const char* matrix) {
            return names.block + "experts." + std::to_string(i) + "." + matrix;
        };
        const float share = static_cast<float>(e.chosen) / static_cast<float>(e.count);
        ExpertWeights out;
        out.router = weights.router(hidden, {names.block + names.router, e.count});
        out.gate_up = weights.count();
        for (uint32_t i = 0; i < e.count; ++i)
            weights.expert(share, PB_SHARD_ROWS, hidden,
                           {{expert(i, names.gate), e.inner}, {expert(i, names.up), e.inner}});
        out.down = weights.count();
        for (uint32_t i = 0; i < e.count; ++i)
            weights.expert(share, PB_SHARD_COLS, e.inner, {{expert(i, names.down), hidden}});
        return out;
    }
};

// What the block computes with, for all layers of a step.
struct ExpertTensors {
    ExpertTensors(const Forward& f, const ExpertShape& e, const DecoderShape& s)
        : logits(f.temp({f.tokens(), e.count})),
          ids(f.temp(PB_I32, {f.tokens(), e.chosen})),
          weights(f.temp(PB_F32, {f.tokens(), e.chosen})),
          gate_up(f.temp({f.tokens(), e.chosen, 2 * int64_t{e.inner} / s.ranks})),
          gated(f.temp({f.tokens(), e.chosen, e.inner / s.ranks})),
          outputs(f.temp({f.tokens(), e.chosen, s.hidden})) {}

    // stream.y from stream.h
    void run(const Forward& f, const ExpertShape& e, const ExpertWeights& w, const Stream& stream) const {
        f.linear(logits, stream.h, w.router);
        f.top_k(ids, weights, logits, e.weights);
        f.expert_linear(gate_up, one_each(stream.h), w.gate_up, e.count, ids);
        if (e.clamped) f.swiglu_oai(each_row(gated), each_row(gate_up), e.clamped->alpha, e.clamped->limit);
        else f.silu_mul(each_row(gated), each_row(gate_up));
        f.expert_linear(outputs, gated, w.down, e.count, ids);
        f.weighted_sum(stream.y, outputs, weights);
        f.all_reduce(stream.y);
    }

    pb_tensor logits, ids, weights, gate_up, gated, outputs;
};

inline constexpr const char* kExpertOps[] = {"top_k", "expert_linear", "weighted_sum", nullptr};

// Decoders with a mixture for an MLP in all layers or most: layers[i].mlp where the layer is dense, else mixtures[i].
class ExpertDecoder : public GatedDecoder {
  public:
    static constexpr const auto& kNeeds = kExpertOps;

    pb_kv_spec kv_spec(uint32_t) const { return shape.kv(window, shape.usual_scale()); }

    void forward(const Forward& f) const {
        const ExpertTensors mixture(f, experts, shape);
        std::optional<GatedMlp> dense;
        if (std::any_of(layers.begin(), layers.end(), is_dense)) dense.emplace(f, shape);
        run(f, [&](uint32_t i, const Stream& stream) {
            if (is_dense(layers[i])) dense->run(f, layers[i].mlp, stream);
            else mixture.run(f, experts, mixtures[i], stream);
        });
    }

  protected:
    static bool is_dense(const Layer& l) { return l.mlp.gate_up != 0; }

    ExpertShape experts;
    uint32_t window = 0; // of all layers; 0: full
    std::vector<ExpertWeights> mixtures; // by layer
};

}  // namespace patchbay
