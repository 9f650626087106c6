// llama - Llama 2 and 3, Mistral, TinyLlama: pre-norm decoder layers, rotary positions, grouped queries, gated SiLU.
#include <cstdio>

#include "patchbay/sdk/model.hpp"
#include "patchbay/sdk/rope.hpp"

namespace {

using patchbay::Error;
using patchbay::Forward;

uint32_t bounded(const patchbay::ModelConfig& config, const char* key, uint32_t low, uint32_t high, std::optional<uint32_t> fallback = {}) {
    const int64_t x = fallback ? config.get<int64_t>(key, *fallback) : config.require<int64_t>(key);
    if (x < low || x > high)
        throw Error(PB_INVALID, std::string(key) + " is " + std::to_string(x) + ", expected " + std::to_string(low) + " to " + std::to_string(high));
    return static_cast<uint32_t>(x);
}

class Llama {
  public:
    static constexpr const char* kArchitectures[] = {"LlamaForCausalLM", "MistralForCausalLM", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        hidden_ = bounded(config, "hidden_size", 1, 1 << 16);
        inner_ = bounded(config, "intermediate_size", 1, 1 << 20);
        layers_ = bounded(config, "num_hidden_layers", 1, 1024);
        heads_ = bounded(config, "num_attention_heads", 1, 4096);
        kv_heads_ = bounded(config, "num_key_value_heads", 1, 4096, heads_);
        vocab_ = bounded(config, "vocab_size", 1, 1 << 24);
        const uint32_t positions = bounded(config, "max_position_embeddings", 1, 1 << 26, 2048);
        if (!config.find("head_dim") && hidden_ % heads_ != 0) throw Error(PB_INVALID, "hidden_size is not a multiple of num_attention_heads");
        head_dim_ = bounded(config, "head_dim", 2, 1024, hidden_ / heads_);
        if (head_dim_ % 2 != 0) throw Error(PB_UNSUPPORTED, "head_dim " + std::to_string(head_dim_) + " is odd");
        if (heads_ % kv_heads_ != 0) throw Error(PB_INVALID, "num_attention_heads is not a multiple of num_key_value_heads");
        eps_ = config.get<float>("rms_norm_eps", 1e-6f);
        if (!(eps_ >= 0 && eps_ < 1)) throw Error(PB_INVALID, "rms_norm_eps is out of range");
        tied_ = config.get<bool>("tie_word_embeddings", false);
        attention_bias_ = config.get<bool>("attention_bias", false);
        mlp_bias_ = config.get<bool>("mlp_bias", false);
        window_ = bounded(config, "sliding_window", 0, 1 << 26, 0);
        if (const auto act = config.find("hidden_act"); act && *act != "silu")
            throw Error(PB_UNSUPPORTED, "hidden_act '" + std::string(*act) + "' is not supported (supported: silu)");
        rope_ = patchbay::rope_settings(config);
        ranks_ = config.raw.tensor_parallel_size;
        if (heads_ % ranks_ != 0 || kv_heads_ % ranks_ != 0 || inner_ % ranks_ != 0)
            throw Error(PB_UNSUPPORTED, "heads and intermediate_size do not divide among " + std::to_string(ranks_) + " ranks");
        return {sizeof(pb_model_facts), vocab_, hidden_, layers_, positions, 0};
    }

    // Order: embedding, rope frequencies, kPerLayer of each layer, final norm, lm head.
    uint32_t weight_count() const { return 2 + layers_ * kPerLayer + 2; }

    pb_weight_spec weight(uint32_t index) const {
        const uint64_t linear = 1u << PB_WEIGHT_LINEAR, embedding = 1u << PB_WEIGHT_EMBEDDING;
        if (index == kEmbedding) {
            pb_weight_spec s = matrix(PB_SHARD_NONE, hidden_);
            s.role = PB_WEIGHT_EMBEDDING;
            s.uses = tied_ ? linear | embedding : embedding;
            add(s, "model.embed_tokens", vocab_, false);
            return s;
        }
        if (index == kRope) return vector(head_dim_ / 2, "");
        if (index == final_norm()) return vector(hidden_, "model.norm");
        if (index == lm_head()) {
            pb_weight_spec s = matrix(PB_SHARD_NONE, hidden_);
            if (tied_) s.same_as = kEmbedding;
            else add(s, "lm_head", vocab_, false);
            return s;
        }
        if (index >= lm_head()) throw Error(PB_INVALID, "no weight " + std::to_string(index));
        const std::string layer = "model.layers." + std::to_string((index - 2) / kPerLayer) + ".";
        const int64_t q = int64_t{heads_} * head_dim_, kv = int64_t{kv_heads_} * head_dim_;
        switch ((index - 2) % kPerLayer) {
            case kInputNorm: return vector(hidden_, layer + "input_layernorm");
            case kQkv: {
                pb_weight_spec s = matrix(PB_SHARD_ROWS, hidden_);
                add(s, layer + "self_attn.q_proj", q, attention_bias_, head_dim_);
                add(s, layer + "self_attn.k_proj", kv, attention_bias_, head_dim_);
                add(s, layer + "self_attn.v_proj", kv, attention_bias_, head_dim_);
                return s;
            }
            case kOut: {
                pb_weight_spec s = matrix(PB_SHARD_COLS, q);
                add(s, layer + "self_attn.o_proj", hidden_, attention_bias_, head_dim_);
                return s;
            }
            case kPostNorm: return vector(hidden_, layer + "post_attention_layernorm");
            case kGateUp: {
                pb_weight_spec s = matrix(PB_SHARD_ROWS, hidden_);
                add(s, layer + "mlp.gate_proj", inner_, mlp_bias_);
                add(s, layer + "mlp.up_proj", inner_, mlp_bias_);
                return s;
            }
            default: {
                pb_weight_spec s = matrix(PB_SHARD_COLS, inner_);
                add(s, layer + "mlp.down_proj", hidden_, mlp_bias_);
                return s;
            }
        }
    }

    void fill(uint32_t index, float* out) const {
        if (index != kRope) throw Error(PB_INVALID, "weight " + std::to_string(index) + " comes from the checkpoint");
        const std::vector<float> f = patchbay::rope_frequencies(rope_, head_dim_);
        std::copy(f.begin(), f.end(), out);
    }

    pb_kv_spec kv_spec(uint32_t) const {
        const float scale = 1 / std::sqrt(static_cast<float>(head_dim_));
        return {window_ ? PB_KV_SLIDING : PB_KV_FULL, heads_ / ranks_, kv_heads_ / ranks_, head_dim_, window_, scale, 0, 0};
    }

    void forward(const Forward& f) const {
        const int64_t t = f.tokens(), d = head_dim_;
        const int64_t q_size = heads_ / ranks_ * d, kv_size = kv_heads_ / ranks_ * d, inner = inner_ / ranks_;
        const pb_tensor x = f.temp({t, hidden_});               // the residual stream
        const pb_tensor h = f.temp({t, hidden_});               // normed input of a block
        const pb_tensor y = f.temp({t, hidden_});               // output of a block
        const pb_tensor qkv = f.temp({t, q_size + 2 * kv_size});
        const pb_tensor attended = f.temp({t, heads_ / ranks_, d});
        const pb_tensor gate_up = f.temp({t, 2 * inner});
        const pb_tensor gated = f.temp({t, inner});
        const pb_tensor q = patchbay::columns(qkv, 0, q_size, d);
        const pb_tensor k = patchbay::columns(qkv, q_size, kv_size, d);
        const pb_tensor v = patchbay::columns(qkv, q_size + kv_size, kv_size, d);
        const pb_tensor attended_rows = flat(attended);

        f.embedding(x, kEmbedding);
        f.rms_norm(h, x, at(0, kInputNorm), eps_);
        for (uint32_t layer = 0; layer < layers_; ++layer) {
            if (layer > 0) f.add_rms_norm(h, x, y, at(layer, kInputNorm), eps_);
            f.linear(qkv, h, at(layer, kQkv));
            f.rope(q, kRope, 1);
            f.rope(k, kRope, 1);
            f.attend(layer, attended, q, k, v);
            f.linear(y, attended_rows, at(layer, kOut));
            f.all_reduce(y);
            f.add_rms_norm(h, x, y, at(layer, kPostNorm), eps_);
            f.linear(gate_up, h, at(layer, kGateUp));
            f.silu_mul(gated, gate_up);
            f.linear(y, gated, at(layer, kDown));
            f.all_reduce(y);
        }
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        f.add(x, y);
        const pb_tensor last = f.temp({rows, hidden_}), normed = f.temp({rows, hidden_}); // only rows that sample
        f.gather_rows(last, x, f.raw.logit_rows);
        f.rms_norm(normed, last, final_norm(), eps_);
        f.linear(f.raw.logits, normed, lm_head());
    }

  private:
    enum : uint32_t { kEmbedding = 0, kRope = 1 };
    enum : uint32_t { kInputNorm, kQkv, kOut, kPostNorm, kGateUp, kDown, kPerLayer };

    static uint32_t at(uint32_t layer, uint32_t which) { return 2 + layer * kPerLayer + which; }
    uint32_t final_norm() const { return 2 + layers_ * kPerLayer; }
    uint32_t lm_head() const { return final_norm() + 1; }

    static pb_tensor flat(pb_tensor t) { // (T, heads, d) contiguous as (T, heads · d)
        t.rank = 2;
        t.shape[1] *= t.shape[2];
        t.shape[2] = 1;
        t.strides[1] = 1;
        return t;
    }

    static pb_weight_spec matrix(pb_shard shard, int64_t cols) {
        pb_weight_spec s{};
        s.role = PB_WEIGHT_LINEAR;
        s.shard = shard;
        s.cols = cols;
        s.same_as = -1;
        s.uses = 1u << PB_WEIGHT_LINEAR;
        return s;
    }
    static pb_weight_spec vector(int64_t length, const std::string& name) { // name empty: computed here
        pb_weight_spec s = matrix(PB_SHARD_NONE, length);
        s.role = PB_WEIGHT_VECTOR;
        s.uses = 1u << PB_WEIGHT_VECTOR;
        if (!name.empty()) add(s, name, 1, false);
        return s;
    }
    static void add(pb_weight_spec& s, const std::string& name, int64_t rows, bool bias, int64_t unit = 0) {
        pb_weight_part& part = s.parts[s.part_count++];
        std::snprintf(part.name, sizeof part.name, "%s.weight", name.c_str());
        if (bias) std::snprintf(part.bias, sizeof part.bias, "%s.bias", name.c_str());
        part.rows = rows;
        part.shard_unit = unit;
    }

    uint32_t hidden_ = 0, inner_ = 0, layers_ = 0, heads_ = 0, kv_heads_ = 0, head_dim_ = 0, vocab_ = 0, window_ = 0, ranks_ = 1;
    float eps_ = 0;
    bool tied_ = false, attention_bias_ = false, mlp_bias_ = false;
    patchbay::RopeSettings rope_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Llama>({.name = "llama", .version = "1.0.0", .summary = "Llama 2 and 3, Mistral, TinyLlama"}))
