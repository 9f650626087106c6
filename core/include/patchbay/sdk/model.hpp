// patchbay/sdk/model.hpp - an architecture as a class:
//   static constexpr const char* kArchitectures[] = {"LlamaForCausalLM", nullptr};
//   pb_model_facts load_config(const patchbay::ModelConfig&);      throws Error(PB_UNSUPPORTED, reason)
//   uint32_t weight_count();  pb_weight_spec weight(uint32_t);  void fill(uint32_t, float*);
//   pb_kv_spec kv_spec(uint32_t layer);  void forward(const patchbay::Forward&);
#pragma once
#include <charconv>
#include <optional>
#include <string>

#include "patchbay/abi/model.h"
#include "patchbay/plugin.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

// config.json, flattened. Numbers that are missing take the fallback; without one they are an error.
class ModelConfig {
  public:
    explicit ModelConfig(const pb_model_config& config) : raw(config) {}

    std::optional<std::string_view> find(std::string_view key) const {
        for (uint32_t i = 0; i < raw.count; ++i)
            if (view(raw.items[i].key) == key && view(raw.items[i].value) != "null") return view(raw.items[i].value);
        return std::nullopt;
    }
    template <class T>
    T get(std::string_view key, T fallback) const {
        const auto text = find(key);
        return text ? detail::parse_setting<T>(key, *text) : fallback;
    }
    template <class T>
    T require(std::string_view key) const {
        if (const auto text = find(key)) return detail::parse_setting<T>(key, *text);
        throw Error(PB_INVALID, "config.json has no '" + std::string(key) + "'");
    }

    const pb_model_config& raw;
};

// What a layer graph is written with: ops on the batch, temporaries, attention.
struct Forward {
    explicit Forward(const pb_forward& forward) : raw(forward), ops(*forward.ops) {}

    int64_t tokens() const { return raw.token_count; }
    pb_tensor temp(std::initializer_list<int64_t> shape) const { // of the activation dtype
        return raw.temp(raw.ctx, raw.activation_dtype, static_cast<int32_t>(shape.size()), shape.begin());
    }
    const pb_weight* weight(uint32_t index) const { return raw.weights[index]; }

    void embedding(const pb_tensor& out, uint32_t table) const { ops.embedding(ops.ctx, &out, weight(table), &raw.ids); }
    void linear(const pb_tensor& out, const pb_tensor& x, uint32_t w) const { ops.linear(ops.ctx, &out, &x, weight(w)); }
    void rms_norm(const pb_tensor& out, const pb_tensor& x, uint32_t w, float eps) const {
        ops.rms_norm(ops.ctx, &out, &x, weight(w), eps);
    }
    void add_rms_norm(const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x, uint32_t w, float eps) const {
        if (ops.add_rms_norm) return ops.add_rms_norm(ops.ctx, &out, &residual, &x, weight(w), eps);
        ops.add(ops.ctx, &residual, &x);
        rms_norm(out, residual, w, eps);
    }
    void rope(const pb_tensor& x, uint32_t inv_freq, float scale) const {
        ops.rope(ops.ctx, &x, &raw.positions, weight(inv_freq), scale);
    }
    void silu_mul(const pb_tensor& out, const pb_tensor& gate_up) const { ops.silu_mul(ops.ctx, &out, &gate_up); }
    void add(const pb_tensor& a, const pb_tensor& b) const { ops.add(ops.ctx, &a, &b); }
    void gather_rows(const pb_tensor& out, const pb_tensor& x, const pb_tensor& rows) const {
        ops.gather_rows(ops.ctx, &out, &x, &rows);
    }
    void all_reduce(const pb_tensor& x) const {
        if (ops.all_reduce) ops.all_reduce(ops.ctx, &x);
    }
    void attend(uint32_t layer, const pb_tensor& out, const pb_tensor& q, const pb_tensor& k, const pb_tensor& v) const {
        raw.attend(raw.ctx, layer, &out, &q, &k, &v);
    }

    const pb_forward& raw;
    const pb_ops& ops;
};

namespace detail {

template <class T>
struct ModelTable {
    static pb_status load_config(void* self, const pb_model_config* config, pb_model_facts* out) {
        return enter<T>(self, [&](T& t) { *out = t.load_config(ModelConfig(*config)); });
    }
    static uint32_t weight_count(void* self) noexcept { return static_cast<Box<T>*>(self)->value.weight_count(); }
    static pb_status weight(void* self, uint32_t index, pb_weight_spec* out) {
        return enter<T>(self, [&](T& t) { *out = t.weight(index); });
    }
    static pb_status fill(void* self, uint32_t index, float* out) {
        return enter<T>(self, [&](T& t) { t.fill(index, out); });
    }
    static pb_status kv_spec(void* self, uint32_t layer, pb_kv_spec* out) {
        return enter<T>(self, [&](T& t) { *out = t.kv_spec(layer); });
    }
    static pb_status forward(void* self, const pb_forward* f) {
        return enter<T>(self, [&](T& t) { t.forward(Forward(*f)); });
    }
    static constexpr pb_model table{sizeof(pb_model), 0, T::kArchitectures, load_config, weight_count,
                                    weight, fill, kv_spec, forward};
};

}  // namespace detail

template <class T>
constexpr pb_component model(const About& about) {
    return detail::component<T>(PB_MODEL, PB_MODEL_DIGEST, about, &detail::ModelTable<T>::table);
}

}  // namespace patchbay
