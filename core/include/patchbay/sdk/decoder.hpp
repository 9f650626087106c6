// patchbay/sdk/decoder.hpp - the sizes that decoders of the Llama kind share, read from config.json and checked, and
// the views and temporaries of their attention block. For model plugins.
#pragma once
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "patchbay/sdk/config_keys.hpp"
#include "patchbay/sdk/model.hpp"

namespace patchbay {

struct DecoderShape {
    uint32_t hidden = 0, inner = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, positions = 0,
             ranks = 1;

    int64_t q_size() const { return int64_t{heads} * head_dim; }     // of all ranks
    int64_t kv_size() const { return int64_t{kv_heads} * head_dim; }
    pb_model_facts facts() const { return {sizeof(pb_model_facts), vocab, hidden, layers, positions, 0, 0, 0, 0}; }

    // KV of a layer of this rank; window 0: full. scale: of q·k, mostly 1 / sqrt(head_dim).
    pb_kv_spec kv(uint32_t window, float scale, float soft_cap = 0) const {
        return {sizeof(pb_kv_spec), window ? PB_KV_SLIDING : PB_KV_FULL, heads / ranks, kv_heads / ranks, head_dim,
                window, scale, soft_cap, 0, 0, nullptr, 0, 0};
    }
    float usual_scale() const { return 1 / std::sqrt(static_cast<float>(head_dim)); }
};

struct Dealt { // what ranks get equal shares of
    const char* key;
    uint32_t count;
};

// Refuses a number of ranks that does not divide each of them, by the first that it does not.
inline void check_deals(std::initializer_list<Dealt> all, uint32_t ranks) {
    const auto fits = [&](uint32_t n) {
        return std::all_of(all.begin(), all.end(), [&](const Dealt& d) { return d.count % n == 0; });
    };
    if (ranks == 0) throw Error(PB_INVALID, "0 ranks");
    for (const Dealt& d : all) {
        if (d.count % ranks == 0) continue;
        std::string sizes;
        for (uint32_t n = 1; n <= std::min(d.count, 64u); ++n)
            if (fits(n)) sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
        throw Error(PB_UNSUPPORTED, std::string(d.key) + " " + std::to_string(d.count) + " does not divide among " +
                                        std::to_string(ranks) + " ranks (tensor_parallel_size may be " + sizes + ")");
    }
}

// The layers that a list names.
inline std::vector<uint32_t> listed_layers(const ModelConfig& config, const std::string& key, uint32_t layers) {
    std::vector<uint32_t> out;
    for (std::string item; config.find(item = key + "." + std::to_string(out.size()));) {
        if (out.size() == layers)
            throw Error(PB_INVALID, key + " has more values than there are layers, " + std::to_string(layers));
        out.push_back(config.integer(item, 0, layers - 1));
    }
    return out;
}

struct DecoderDefaults { // of an architecture, for a config.json without
    uint32_t head_dim = 0; // 0: hidden / heads
    uint32_t positions = 2048;
};

// hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim, vocab_size and
// max_position_embeddings.
inline DecoderShape decoder_shape(const ModelConfig& config, const DecoderDefaults& missing = {}) {
    DecoderShape s;
    s.hidden = config.integer("hidden_size", 1, 1 << 16);
    s.inner = config.integer("intermediate_size", 1, 1 << 20);
    s.layers = config.integer("num_hidden_layers", 1, 1024);
    s.heads = config.integer("num_attention_heads", 1, 4096);
    s.kv_heads = config.integer("num_key_value_heads", 1, 4096, s.heads);
    s.vocab = config.integer("vocab_size", 1, 1 << 24);
    s.positions = config.integer("max_position_embeddings", 1, 1 << 26, missing.positions);
    if (!config.find("head_dim") && missing.head_dim == 0 && s.hidden % s.heads != 0)
        throw Error(PB_INVALID, "hidden_size is not a multiple of num_attention_heads");
    s.head_dim = config.integer("head_dim", 2, 1024, missing.head_dim ? missing.head_dim : s.hidden / s.heads);
    if (s.head_dim % 2 != 0) throw Error(PB_UNSUPPORTED, "head_dim " + std::to_string(s.head_dim) + " is odd");
    if (s.heads % s.kv_heads != 0)
        throw Error(PB_INVALID, "num_attention_heads is not a multiple of num_key_value_heads");
    s.ranks = config.raw.tensor_parallel_size;
    check_deals({{"num_attention_heads", s.heads},
                 {"num_key_value_heads", s.kv_heads}, // not copied to several ranks
                 {"intermediate_size", s.inner}},
                s.ranks);
    return s;
}

inline float norm_epsilon(const ModelConfig& config, const char* key, float default_value) {
    const float eps = config.get<float>(key, default_value);
    if (!(eps >= 0 && eps < 1)) throw Error(PB_INVALID, std::string(key) + " is out of range");
    return eps;
}

// sliding_window: 0 where it is null; missing: what it means where it is not there.
inline uint32_t sliding_window(const ModelConfig& config, uint32_t missing) {
    if (config.is_null("sliding_window") || (missing == 0 && !config.find("sliding_window"))) return 0;
    return config.integer("sliding_window", 1, 1 << 26, missing);
}

// The window of each layer, 0 where it is full: layer_types of config.json where it is there, else of `slides`.
template <class F>
std::vector<uint32_t> layer_windows(const ModelConfig& config, uint32_t layers, uint32_t window, F&& slides) {
    std::vector<uint32_t> out;
    const bool listed = config.has_section("layer_types") || config.find("layer_types");
    for (uint32_t i = 0; i < layers; ++i) {
        const std::string key = "layer_types." + std::to_string(i);
        if (listed && !config.find(key))
            throw Error(PB_INVALID, "layer_types names " + std::to_string(i) + " layers, expected " +
                                        std::to_string(layers));
        const auto type = config.find(key);
        if (type && *type != "full_attention" && *type != "sliding_attention")
            throw Error(PB_UNSUPPORTED, key + " '" + std::string(*type) +
                                            "' is not supported (supported: full_attention, sliding_attention)");
        const bool sliding = type ? *type == "sliding_attention" : slides(i);
        if (sliding && window == 0)
            throw Error(PB_INVALID, "layer " + std::to_string(i) + " slides, but there is no sliding_window");
        out.push_back(sliding ? window : 0);
    }
    return out;
}

// q, k and v as columns of one tensor, and what attention gives back.
struct AttentionTensors {
    AttentionTensors(const Forward& f, const DecoderShape& s)
        : qkv(f.temp({f.tokens(), (s.q_size() + 2 * s.kv_size()) / s.ranks})),
          q(columns(qkv, 0, s.q_size() / s.ranks, s.head_dim)),
          k(columns(qkv, s.q_size() / s.ranks, s.kv_size() / s.ranks, s.head_dim)),
          v(columns(qkv, (s.q_size() + s.kv_size()) / s.ranks, s.kv_size() / s.ranks, s.head_dim)),
          out(f.temp({f.tokens(), s.heads / s.ranks, s.head_dim})),
          out_rows(flat(out)) {}

    pb_tensor qkv;      // (T, q + k + v)
    pb_tensor q, k, v;  // of it, (T, heads, head_dim)
    pb_tensor out;      // (T, heads, head_dim)
    pb_tensor out_rows; // the same as (T, heads · head_dim)
};

}  // namespace patchbay
