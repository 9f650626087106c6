// A decoder as Llama's, whose forward passes fail after the first few where the vocabulary is that of the demo models,
// which no check of a probe has. ONLY_ON_RANK: on that rank. LATE_FAULT_MS: so long after the end of a pass, when the
// other ranks have got what they need from this one and have gone on.
#include <poll.h>
#include <unistd.h>

#include <cstdint>

#include "patchbay/sdk/decoder_blocks.hpp"

namespace {

constexpr uint32_t kVocabulary = 2048;
#ifndef GOOD_PASSES
#define GOOD_PASSES 1000000
#endif
constexpr int kGoodPasses = GOOD_PASSES;
#ifndef ONLY_ON_RANK
#define ONLY_ON_RANK -1
#endif
constexpr int64_t kOnlyOnRank = ONLY_ON_RANK;

class Faulty : public patchbay::GatedDecoder {
  public:
    static constexpr const char* kArchitectures[] = {"LlamaForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
#ifdef FAILS_ON_RANK
        if (config.raw.rank == FAILS_ON_RANK) throw patchbay::Error(PB_FAILED, "fails on purpose");
#endif
        rank_ = config.raw.rank;
        shape = patchbay::decoder_shape(config, {.positions = 2048});
        eps = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-6f);
        ends = patchbay::DecoderEnds::list(weights, config, shape, {.root = "model.", .head = "lm_head"});
        rotary = patchbay::Rotary::list(weights, shape,
                                        patchbay::rope_settings(config, {.positions_if_missing = 2048}),
                                        shape.head_dim);
        for (uint32_t i = 0; i < shape.layers; ++i) {
            const std::string name = "model.layers." + std::to_string(i) + ".";
            Layer& l = layers.emplace_back();
            l.norm = weights.vector(shape.hidden, name + "input_layernorm.weight");
            l.attention = patchbay::AttentionWeights::list(weights, shape, name + "self_attn.", {false, false});
            l.mlp_norm = weights.vector(shape.hidden, name + "post_attention_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, shape, name + "mlp.", false);
        }
        facts_ = ends.facts(shape);
        return facts_;
    }

    pb_kv_spec kv_spec(uint32_t) const { return shape.kv(0, shape.usual_scale()); }

    void forward(const patchbay::Forward& f) {
        const bool fails = facts_.vocab_size == kVocabulary && (kOnlyOnRank < 0 || rank_ == kOnlyOnRank) &&
                           ++passes_ > kGoodPasses;
#ifdef LATE_FAULT_MS
        GatedDecoder::forward(f);
        if (!fails) return;
        poll(nullptr, 0, LATE_FAULT_MS);
        throw patchbay::Error(PB_FAILED, "fails on purpose");
#endif
        if (fails) {
#if defined(HANGS)
            for (;;) pause();
#elif defined(LATE_MS)
            poll(nullptr, 0, LATE_MS);
#else
            throw patchbay::Error(PB_FAILED, "fails on purpose");
#endif
        }
        GatedDecoder::forward(f);
    }

  private:
    pb_model_facts facts_{};
    int64_t rank_ = 0;
    int passes_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Faulty>({.name = "faulty", .version = "1.0.0", .summary = "for tests"}))
