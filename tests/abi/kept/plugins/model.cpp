// kept_sdk - a token table, attention over the tokens themselves in each layer, and an lm head, over the SDK.
#include <cstdio>

#include "grown.hpp"
#include "patchbay/sdk/model.hpp"

namespace {

class Kept {
  public:
    static constexpr const char* kArchitectures[] = {"KeptForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        kept::expect_zero_growth(config.raw, "pb_model_config");
        if (config.raw.tensor_parallel_size != 1) throw patchbay::Error(PB_UNSUPPORTED, "it is computed by one rank");
        hidden_ = config.integer("hidden_size", 1, 1 << 20);
        layers_ = config.integer("num_hidden_layers", 1, 1 << 10);
        vocab_ = config.integer("vocab_size", 1, 1 << 20);
        if (hidden_ % kHeads != 0) throw patchbay::Error(PB_UNSUPPORTED, "hidden_size is no multiple of 4");
        auto out = patchbay::sized<pb_model_facts>();
        out.vocab_size = vocab_;
        out.hidden_size = hidden_;
        out.layer_count = layers_;
        out.max_position = 512;
        return out;
    }
    uint32_t weight_count() const { return 2; }
    pb_weight_spec weight(uint32_t index) const {
        if (index > 1) throw patchbay::Error(PB_INVALID, "there are two weights");
        auto out = patchbay::sized<pb_weight_spec>();
        out.role = index == 0 ? PB_WEIGHT_EMBEDDING : PB_WEIGHT_LINEAR;
        out.uses = uint64_t{1} << out.role;
        out.cols = hidden_;
        out.part_count = 1;
        std::snprintf(out.parts[0].name, sizeof out.parts[0].name, "%s", index == 0 ? "embed.weight" : "head.weight");
        out.parts[0].rows = vocab_;
        return out;
    }
    void fill(uint32_t, float*) const { throw patchbay::Error(PB_INVALID, "no weight is computed"); }
    pb_kv_spec kv_spec(uint32_t) const {
        auto out = patchbay::sized<pb_kv_spec>();
        out.heads = out.kv_heads = kHeads;
        out.head_dim = hidden_ / kHeads;
        out.scale = 0.25f;
        return out;
    }
    void forward(const patchbay::Forward& f) const {
        kept::expect_zero_growth(f.raw, "pb_forward");
        kept::expect_zero_growth(f.ops, "pb_ops");
        const pb_tensor x = f.temp({f.tokens(), hidden_}), y = f.temp({f.tokens(), hidden_}),
                        last = f.temp({f.raw.logit_rows.shape[0], hidden_});
        f.embedding(x, 0);
        for (uint32_t layer = 0; layer < layers_; ++layer) {
            f.attend(layer, as_heads(y), as_heads(x), as_heads(x), as_heads(x));
            f.add(x, y);
        }
        f.gather_rows(last, x, f.raw.logit_rows);
        f.linear(f.raw.logits, last, 1);
    }

  private:
    static constexpr uint32_t kHeads = 4;
    static pb_tensor as_heads(pb_tensor x) { // (T, hidden) as (T, heads, head_dim)
        x.rank = 3;
        x.shape[2] = x.strides[1] = x.shape[1] / kHeads;
        x.shape[1] = kHeads;
        x.strides[2] = 1;
        return x;
    }
    uint32_t hidden_ = 0, layers_ = 0, vocab_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Kept>(
    {.name = "kept_sdk", .version = "1.0.0", .summary = "a token table, attention and an lm head"}))
