// A healthy model, and models each wrong in one way, as components of one library.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "patchbay/sdk/weight_list.hpp"

namespace {

using patchbay::Error;
using patchbay::Forward;
using patchbay::ModelConfig;

// A decoder without a feed-forward network: a layer adds what its attention sees.
class Healthy : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"SpecimenForCausalLM", nullptr};

    pb_model_facts load_config(const ModelConfig& config) { return read(config, positive(config, "vocab_size")); }
    pb_kv_spec kv_spec(uint32_t) const {
        return {sizeof(pb_kv_spec), PB_KV_FULL, kHeads, kHeads, static_cast<uint32_t>(head_dim()), 0, 0.25f, 0, 0};
    }
    void forward(const Forward& f) const { decode(f, {}); }

  protected:
    pb_model_facts read(const ModelConfig& config, uint32_t vocab) {
        hidden_ = positive(config, "hidden_size");
        layers_ = positive(config, "num_hidden_layers");
        vocab_ = vocab;
        if (hidden_ % (2 * kHeads) != 0 || layers_ > 100) throw Error(PB_UNSUPPORTED, "such a shape");
        frequencies_ = weights.computed(std::vector<float>(head_dim() / 2, 0.5f));
        embedding_ = weights.embedding({"embed", vocab_}, hidden_);
        for (uint32_t layer = 0; layer < layers_; ++layer) {
            const std::string name = "layers." + std::to_string(layer);
            qkv_.push_back(weights.linear(PB_SHARD_ROWS, hidden_, {{name + ".qkv", 3 * hidden_}}));
            out_.push_back(weights.linear(PB_SHARD_COLS, hidden_, {{name + ".out", hidden_}}));
        }
        lm_head_ = weights.linear(PB_SHARD_ROWS, hidden_, {{"lm_head", vocab_}});
        return {sizeof(pb_model_facts), vocab_, hidden_, layers_, 256, PB_MODEL_GIVES_HIDDEN, embedding_, lm_head_};
    }

    struct Twist { // what another model does wrong
        bool forgets_the_residual = false, forgets_rope = false, counts_from_the_chunk = false, looks_ahead = false,
             gives_the_embedding = false, makes_no_logits = false, gives_no_hidden = false;
        int64_t first_row = 0; // of those whose logits it makes
    };
    static constexpr uint32_t kHeads = 4;

    static uint32_t positive(const ModelConfig& config, const char* key) {
        const auto x = config.require<int64_t>(key);
        if (x < 1 || x > 1 << 20) throw Error(PB_INVALID, std::string(key) + " is " + std::to_string(x));
        return static_cast<uint32_t>(x);
    }
    int64_t head_dim() const { return hidden_ / kHeads; }

    void decode(const Forward& f, const Twist& twist) const {
        const pb_tensor x = f.temp({f.tokens(), hidden_}), added = f.temp({f.tokens(), hidden_}),
                        every = numbers(f, [](int64_t t) { return t; });
        const auto rotate = [&](const pb_tensor& heads) {
            if (twist.forgets_rope) return;
            const pb_tensor& positions = twist.counts_from_the_chunk ? every : f.raw.positions;
            f.ops.rope(f.ops.ctx, &heads, &positions, f.weight(frequencies_), 1);
        };
        f.embedding(x, embedding_);
        if (f.wants_hidden() && twist.gives_the_embedding) f.gather_rows(f.raw.hidden, x, every);
        for (uint32_t layer = 0; layer < layers_; ++layer) {
            const pb_tensor qkv = f.temp({f.tokens(), 3 * hidden_}), seen = f.temp({f.tokens(), hidden_});
            f.linear(qkv, x, qkv_[layer]);
            const pb_tensor q = patchbay::columns(qkv, 0, hidden_, head_dim()),
                            k = patchbay::columns(qkv, hidden_, hidden_, head_dim()),
                            v = patchbay::columns(qkv, 2 * hidden_, hidden_, head_dim());
            rotate(q);
            rotate(k);
            f.attend(layer, patchbay::columns(seen, 0, hidden_, head_dim()), q, k, v);
            f.linear(added, seen, out_[layer]);
            if (twist.forgets_the_residual) f.gather_rows(x, added, every);
            else f.add(x, added);
        }
        if (twist.looks_ahead) { // late in a long chunk
            const pb_tensor later = f.temp({f.tokens(), hidden_});
            f.gather_rows(later, x, numbers(f, [&](int64_t t) {
                const int32_t position = static_cast<const int32_t*>(f.raw.positions.data)[t];
                return position >= 16 && t + 1 < f.tokens() ? t + 1 : t;
            }));
            f.add(x, later);
        }
        if (f.wants_hidden() && !twist.gives_the_embedding && !twist.gives_no_hidden)
            f.gather_rows(f.raw.hidden, x, every);
        if (twist.makes_no_logits) return;
        const pb_tensor last = f.temp({f.raw.logit_rows.shape[0], hidden_});
        f.gather_rows(last, x, f.raw.logit_rows);
        f.linear(from(f.raw.logits, twist.first_row), from(last, twist.first_row), lm_head_);
    }

  private:
    template <class F>
    static pb_tensor numbers(const Forward& f, F&& of_token) {
        const pb_tensor out = f.temp(PB_I32, {f.tokens()});
        for (int64_t t = 0; t < f.tokens(); ++t)
            static_cast<int32_t*>(out.data)[t] = static_cast<int32_t>(of_token(t));
        return out;
    }
    static pb_tensor from(pb_tensor rows, int64_t first) {
        rows.data = static_cast<float*>(rows.data) + first * rows.strides[0];
        rows.shape[0] -= first;
        return rows;
    }

  protected:
    uint32_t hidden_ = 0, layers_ = 0, vocab_ = 0, frequencies_ = 0, embedding_ = 0, lm_head_ = 0;
    std::vector<uint32_t> qkv_, out_;
};

struct ForgetsTheResidual : Healthy {
    void forward(const Forward& f) const { decode(f, {.forgets_the_residual = true}); }
};
struct ForgetsRope : Healthy {
    void forward(const Forward& f) const { decode(f, {.forgets_rope = true}); }
};
struct CountsFromTheChunk : Healthy {
    void forward(const Forward& f) const { decode(f, {.counts_from_the_chunk = true}); }
};
struct ForgetsLogitsOfOneToken : Healthy { // where it comes alone, as a decode does
    void forward(const Forward& f) const { decode(f, {.makes_no_logits = f.tokens() == 1}); }
};
struct ForgetsHiddenOfOneToken : Healthy {
    void forward(const Forward& f) const { decode(f, {.gives_no_hidden = f.tokens() == 1}); }
};
struct LooksAhead : Healthy {
    void forward(const Forward& f) const { decode(f, {.looks_ahead = true}); }
};
struct GivesTheEmbedding : Healthy { // in place of the hidden states
    void forward(const Forward& f) const { decode(f, {.gives_the_embedding = true}); }
};
struct SkipsTheFirstRow : Healthy { // of a sequence
    void forward(const Forward& f) const {
        const bool begins = *static_cast<const int32_t*>(f.raw.positions.data) == 0;
        decode(f, {.first_row = begins ? 1 : 0});
    }
};

struct ServesNothing : Healthy {
    static constexpr const char* kArchitectures[] = {"", nullptr};
};

struct BelievesAnyVocabulary : Healthy {
    pb_model_facts load_config(const ModelConfig& config) {
        return read(config, static_cast<uint32_t>(config.require<int64_t>("vocab_size")));
    }
};

struct ReportsAnotherWidth : Healthy {
    pb_model_facts load_config(const ModelConfig& config) {
        auto facts = Healthy::load_config(config);
        facts.hidden_size += 1;
        return facts;
    }
};

struct TakesATensorTwice : Healthy {
    pb_weight_spec weight(uint32_t index) const { return Healthy::weight(index == qkv_[1] ? qkv_[0] : index); }
};

struct HasWeightsWithoutEnd : Healthy {
    pb_weight_spec weight(uint32_t index) const { return Healthy::weight(std::min(index, lm_head_)); }
};

struct TakesATargetsWeight : Healthy {  // and is no head
    pb_weight_spec weight(uint32_t index) const {
        pb_weight_spec s = Healthy::weight(index);
        if (index == embedding_) s.of_target = PB_TARGET_LM_HEAD;
        return s;
    }
};

struct FillsPastTheEnd : Healthy {
    void fill(uint32_t, float* out) const { std::fill_n(out, head_dim() / 2 + 1, 1.0f); }
};

struct HasNoScale : Healthy {
    pb_kv_spec kv_spec(uint32_t) const {
        return {sizeof(pb_kv_spec), PB_KV_FULL, 4, 4, 16, 0, std::numeric_limits<float>::quiet_NaN(), 0, 0};
    }
};

template <class T>
constexpr pb_component component(const char* name) {
    return patchbay::model<T>({.name = name, .version = "1.0.0", .summary = "for the tests of the probe"});
}

}  // namespace

PATCHBAY_PLUGIN(component<Healthy>("healthy"), component<ServesNothing>("serves_nothing"),
                component<BelievesAnyVocabulary>("believes_any_vocabulary"),
                component<ReportsAnotherWidth>("reports_another_width"),
                component<TakesATensorTwice>("takes_a_tensor_twice"),
                component<HasWeightsWithoutEnd>("has_weights_without_end"),
                component<FillsPastTheEnd>("fills_past_the_end"), component<HasNoScale>("has_no_scale"),
                component<TakesATargetsWeight>("takes_a_targets_weight"),
                component<ForgetsTheResidual>("forgets_the_residual"), component<ForgetsRope>("forgets_rope"),
                component<CountsFromTheChunk>("counts_from_the_chunk"),
                component<ForgetsLogitsOfOneToken>("forgets_logits_of_one_token"),
                component<ForgetsHiddenOfOneToken>("forgets_hidden_of_one_token"), component<LooksAhead>("looks_ahead"),
                component<GivesTheEmbedding>("gives_the_embedding"),
                component<SkipsTheFirstRow>("skips_the_first_row"))
