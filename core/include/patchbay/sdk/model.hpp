// patchbay/sdk/model.hpp - an architecture as a class:
//   static constexpr const char* kArchitectures[] = {"LlamaForCausalLM", nullptr};
//   pb_model_facts load_config(const patchbay::ModelConfig&);      throws Error(PB_UNSUPPORTED, reason)
//   uint32_t weight_count();  pb_weight_spec weight(uint32_t);  void fill(uint32_t, float*);
//   pb_kv_spec kv_spec(uint32_t layer);  void forward(const patchbay::Forward&);
// Optional: static constexpr const char* kNeeds[] = {"layer_norm", nullptr}; the ops that a device may lack.
// static constexpr ModelKeys kKeys[] = {{"LlamaForCausalLM", tables}}; what it does with each key (config_keys.hpp).
#pragma once
#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>

#include "patchbay/abi/model.h"
#include "patchbay/plugin.hpp"
#include "patchbay/sdk/config_shape.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

// config.json, flattened. What is missing (or null) takes the default value; without one it is an error. A value of
// another type than the one that is read is always an error, which names the key: a list or a map where one value is
// expected, one value where the key's parents should be a list or a map, a text where a number is expected. A string
// that would read as another type stands with its quotes, an empty list as [], an empty map as {}.
class ModelConfig {
  public:
    // host: that warnings go to; null: they are dropped.
    explicit ModelConfig(const pb_model_config& config, const pb_host* host = nullptr) : raw(config), host_(host) {}

    // Of what is read otherwise than the file may mean it. Rank 0 says it for all.
    void warn(const std::string& text) const {
        if (host_ && raw.rank == 0) log(*host_, PB_LOG_WARN, "config.json: " + text);
    }
    const pb_host* host() const { return host_; }

    // Of a single value.
    std::optional<std::string_view> find(std::string_view key) const {
        const auto value = look_up(key, "a single value");
        return value == "null" ? std::nullopt : value;
    }
    template <class T>
    T get(std::string_view key, T default_value) const {
        const auto value = look_up(key, expected<T>());
        if (std::same_as<T, bool> && value == "null") // which some read as false, and some as the default
            throw Error(PB_INVALID, std::string(key) + " is null, expected true or false");
        return value && *value != "null" ? parse<T>(key, *value) : default_value;
    }
    bool is_null(std::string_view key) const { // said to be so, not missing
        for (uint32_t i = 0; i < raw.count; ++i)
            if (view(raw.items[i].key) == key && view(raw.items[i].value) == "null") return true;
        return false;
    }
    // Whether an object or a list of that name has anything in it.
    bool has_section(std::string_view key) const {
        for (uint32_t i = 0; i < raw.count; ++i)
            if (const auto name = view(raw.items[i].key);
                name.size() > key.size() && name.starts_with(key) && name[key.size()] == '.')
                return true;
        return false;
    }
    // Of a number whose null means that there is none, which is 0 then.
    template <class T>
    T get_or_none(std::string_view key, T default_value) const {
        const auto value = look_up(key, expected<T>());
        return !value ? default_value : *value == "null" ? 0 : parse<T>(key, *value);
    }
    template <class T>
    T require(std::string_view key) const {
        const auto value = look_up(key, expected<T>());
        if (value && *value != "null") return parse<T>(key, *value);
        throw Error(PB_INVALID, "config.json has no '" + std::string(key) + "'");
    }

    // A number of [low, high].
    uint32_t integer(std::string_view key, uint32_t low, uint32_t high,
                     std::optional<uint32_t> default_value = {}) const {
        const int64_t x = default_value ? get<int64_t>(key, *default_value) : require<int64_t>(key);
        if (x < low || x > high)
            throw Error(PB_INVALID, std::string(key) + " is " + std::to_string(x) + ", expected " +
                                        std::to_string(low) + " to " + std::to_string(high));
        return static_cast<uint32_t>(x);
    }
    // The same under either of two names.
    uint32_t integer_as(std::string_view key, std::string_view other, uint32_t low, uint32_t high,
                        std::optional<uint32_t> default_value = {}) const {
        if (!find(other)) return integer(key, low, high, default_value);
        const uint32_t named = integer(other, low, high);
        if (find(key) && integer(key, low, high) != named)
            throw Error(PB_INVALID, std::string(key) + " is " + std::string(*find(key)) + " and " + std::string(other) +
                                        " " + std::string(*find(other)) + ", two names of one number");
        return named;
    }
    // Refuses what the model does not do; `supported` first is what a missing key means.
    std::string_view one_of(std::string_view key, std::initializer_list<std::string_view> supported) const {
        const std::string_view value = is_null(key) ? "null" : find(key).value_or(*supported.begin());
        std::string all;
        for (const std::string_view s : supported) {
            if (value == s) return value;
            all += (all.empty() ? "" : ", ") + std::string(s);
        }
        throw Error(PB_UNSUPPORTED,
                    std::string(key) + " " + shown(value) + " is not supported (supported: " + all + ")");
    }

    const pb_model_config& raw;

  private:
    const pb_host* host_;

    // As it stands, "null" too; refuses a configuration of another shape.
    std::optional<std::string_view> look_up(std::string_view key, std::string_view expected) const {
        std::optional<std::string_view> out;
        for (uint32_t i = 0; i < raw.count; ++i) {
            const std::string_view other = view(raw.items[i].key), value = view(raw.items[i].value);
            if (const std::string fault = shape_fault(key, other, value, expected); !fault.empty())
                throw Error(PB_INVALID, fault);
            if (!out && other == key) out = value;
        }
        return out;
    }
    template <class T>
    static constexpr std::string_view expected() {
        if constexpr (std::same_as<T, bool>) return "true or false";
        else if constexpr (std::integral<T>) return "a whole number";
        else if constexpr (std::floating_point<T>) return "a number";
        else return "a text";
    }
    template <class T>
    static T parse(std::string_view key, std::string_view value) {
        const std::string_view digits = value.substr(value.starts_with('-') ? 1 : 0);
        const bool is_number = !digits.empty() && digits[0] <= '9'; // not nan, not inf
        try {
            if (std::same_as<T, bool> || !std::is_arithmetic_v<T> || is_number)
                return detail::parse_setting<T>(key, value);
        } catch (const Error&) { // the text below says what is expected, too
        }
        throw Error(PB_INVALID, std::string(key) + " is " + shown(value) + ", expected " + std::string(expected<T>()));
    }
};

enum class TopK { kAsProbabilities, kSumsToOne };

// What a layer graph is written with: ops on the batch, temporaries, attention.
struct Forward {
    explicit Forward(const pb_forward& forward) : raw(forward), whole_ops(forward.ops), ops(*whole_ops) {}
    Forward(const Forward&) = delete; // ops may point into it
    Forward& operator=(const Forward&) = delete;

    int64_t tokens() const { return raw.token_count; }
    pb_tensor temp(std::initializer_list<int64_t> shape) const { return temp(raw.activation_dtype, shape); }
    pb_tensor temp(pb_dtype dtype, std::initializer_list<int64_t> shape) const {
        return raw.temp(raw.ctx, dtype, static_cast<int32_t>(shape.size()), shape.begin());
    }
    const pb_weight* weight(uint32_t index) const { return raw.weights[index]; }
    bool wants_hidden() const { return raw.hidden.rank != 0; }

    void embedding(const pb_tensor& out, uint32_t table) const {
        ops.embedding(ops.ctx, &out, weight(table), &raw.ids);
    }
    void linear(const pb_tensor& out, const pb_tensor& x, uint32_t w) const {
        ops.linear(ops.ctx, &out, &x, weight(w));
    }
    void rms_norm(const pb_tensor& out, const pb_tensor& x, uint32_t w, float eps) const {
        ops.rms_norm(ops.ctx, &out, &x, weight(w), eps);
    }
    void add_rms_norm(const pb_tensor& out, const pb_tensor& residual, const pb_tensor& x, uint32_t w,
                      float eps) const {
        if (ops.add_rms_norm) return ops.add_rms_norm(ops.ctx, &out, &residual, &x, weight(w), eps);
        ops.add(ops.ctx, &residual, &x);
        rms_norm(out, residual, w, eps);
    }
    void rope(const pb_tensor& x, uint32_t inv_freq, float scale) const {
        ops.rope(ops.ctx, &x, &raw.positions, weight(inv_freq), scale);
    }
    void layer_norm(const pb_tensor& out, const pb_tensor& x, uint32_t w, uint32_t b, float eps) const {
        known(ops.layer_norm, "layer_norm")(ops.ctx, &out, &x, weight(w), weight(b), eps);
    }
    void relu(const pb_tensor& x) const { known(ops.relu, "relu")(ops.ctx, &x); }
    void gelu_tanh(const pb_tensor& x) const { known(ops.gelu_tanh, "gelu_tanh")(ops.ctx, &x); }
    void gelu_tanh_mul(const pb_tensor& out, const pb_tensor& gate_up) const {
        known(ops.gelu_tanh_mul, "gelu_tanh_mul")(ops.ctx, &out, &gate_up);
    }
    void silu(const pb_tensor& x) const { known(ops.silu, "silu")(ops.ctx, &x); }
    void gelu_erf(const pb_tensor& x) const { known(ops.gelu_erf, "gelu_erf")(ops.ctx, &x); }
    void gelu_erf_mul(const pb_tensor& out, const pb_tensor& gate_up) const {
        known(ops.gelu_erf_mul, "gelu_erf_mul")(ops.ctx, &out, &gate_up);
    }
    void sigmoid_mul(const pb_tensor& x, const pb_tensor& gate) const {
        known(ops.sigmoid_mul, "sigmoid_mul")(ops.ctx, &x, &gate);
    }
    void swiglu_oai(const pb_tensor& out, const pb_tensor& gate_up, float alpha, float limit) const {
        known(ops.swiglu_oai, "swiglu_oai")(ops.ctx, &out, &gate_up, alpha, limit);
    }
    void scale(const pb_tensor& x, float factor) const { known(ops.scale, "scale")(ops.ctx, &x, factor); }
    void soft_cap(const pb_tensor& x, float cap) const { known(ops.soft_cap, "soft_cap")(ops.ctx, &x, cap); }
    void top_k(const pb_tensor& ids, const pb_tensor& weights, const pb_tensor& logits, TopK sum) const {
        known(ops.top_k, "top_k")(ops.ctx, &ids, &weights, &logits, sum == TopK::kSumsToOne);
    }
    // The experts are the weights [first, first + count).
    void expert_linear(const pb_tensor& out, const pb_tensor& x, uint32_t first, uint32_t count,
                       const pb_tensor& ids) const {
        known(ops.expert_linear, "expert_linear")(ops.ctx, &out, &x, raw.weights + first, count, &ids);
    }
    void weighted_sum(const pb_tensor& out, const pb_tensor& x, const pb_tensor& weights) const {
        known(ops.weighted_sum, "weighted_sum")(ops.ctx, &out, &x, &weights);
    }
    // False: the device has no such op, and nothing was done.
    bool gated_mlp(const pb_tensor& out, const pb_tensor& x, uint32_t gate_up, uint32_t down, pb_gate gate) const {
        if (!ops.gated_mlp) return false;
        ops.gated_mlp(ops.ctx, &out, &x, weight(gate_up), weight(down), gate);
        return true;
    }
    // The weights and the state of one such op; `offset` bytes into the layer's state.
    void causal_conv_silu(const pb_tensor& out, const pb_tensor& x, uint32_t w, std::optional<uint32_t> bias,
                          uint32_t width, const pb_state& state, uint64_t offset) const {
        known(ops.causal_conv_silu, "causal_conv_silu")(ops.ctx, &out, &x, weight(w), bias ? weight(*bias) : nullptr,
                                                        width, &state, offset);
    }
    void ssm_scan(const pb_tensor& out, const pb_tensor& x, const pb_tensor& dt, const pb_tensor& b,
                  const pb_tensor& c, const pb_scan& weights, const pb_state& state, uint64_t offset) const {
        known(ops.ssm_scan, "ssm_scan")(ops.ctx, &out, &x, &dt, &b, &c, &weights, &state, offset);
    }
    pb_state state(uint32_t layer) const {
        pb_state out{};
        out.struct_size = sizeof out;
        raw.state(raw.ctx, layer, &out);
        return out;
    }
    void embed_positions(const pb_tensor& out, uint32_t table) const {
        ops.embedding(ops.ctx, &out, weight(table), &raw.positions);
    }
    void silu_mul(const pb_tensor& out, const pb_tensor& gate_up) const { ops.silu_mul(ops.ctx, &out, &gate_up); }
    void add(const pb_tensor& a, const pb_tensor& b) const { ops.add(ops.ctx, &a, &b); }
    // Of a head: the hidden states that its tokens go on from, to out (T, hidden).
    void features(const pb_tensor& out) const { gather_rows(out, raw.features, raw.feature_rows); }
    void gather_rows(const pb_tensor& out, const pb_tensor& x, const pb_tensor& rows) const {
        ops.gather_rows(ops.ctx, &out, &x, &rows);
    }
    void all_reduce(const pb_tensor& x) const {
        if (ops.all_reduce) ops.all_reduce(ops.ctx, &x);
    }
    void all_gather(const pb_tensor& out, const pb_tensor& x) const {
        known(ops.all_gather, "all_gather")(ops.ctx, &out, &x);
    }
    void attend(uint32_t layer, const pb_tensor& out, const pb_tensor& q, const pb_tensor& k,
                const pb_tensor& v) const {
        raw.attend(raw.ctx, layer, &out, &q, &k, &v);
    }
    void attend(uint32_t layer, const pb_tensor& out, const pb_tensor& q) const { // over the KV that it shares
        raw.attend(raw.ctx, layer, &out, &q, nullptr, nullptr);
    }

    const pb_forward& raw;
    const Whole<pb_ops> whole_ops;
    const pb_ops& ops; // as this plugin knows them

  private:
    template <class Op>
    static Op known(Op op, const char* name) { // for a model that calls more than it says in kNeeds
        if (!op) throw Error(PB_UNSUPPORTED, std::string("the device has no op '") + name + "'");
        return op;
    }
};

namespace detail {

template <class T>
struct ModelTable {
    static pb_status load_config(void* self, const pb_model_config* config, pb_model_facts* out) {
        const pb_host* const host = static_cast<Box<T>*>(self)->host;
        return enter<T>(self, [&](T& t) { copy_out(out, t.load_config(ModelConfig(*Whole(config), host))); });
    }
    static uint32_t weight_count(void* self) noexcept { return static_cast<Box<T>*>(self)->value.weight_count(); }
    static pb_status weight(void* self, uint32_t index, pb_weight_spec* out) {
        return enter<T>(self, [&](T& t) { copy_out(out, t.weight(index)); });
    }
    static pb_status fill(void* self, uint32_t index, float* out) {
        return enter<T>(self, [&](T& t) { t.fill(index, out); });
    }
    static pb_status kv_spec(void* self, uint32_t layer, pb_kv_spec* out) {
        return enter<T>(self, [&](T& t) { copy_out(out, t.kv_spec(layer)); });
    }
    static pb_status forward(void* self, const pb_forward* f) {
        return enter<T>(self, [&](T& t) { t.forward(Forward(*Whole(f))); });
    }
    static constexpr const char* const* needs() {
        if constexpr (requires { T::kNeeds; }) return T::kNeeds;
        else return nullptr;
    }
    static constexpr pb_model table{sizeof(pb_model), 0, T::kArchitectures, needs(), load_config, weight_count,
                                    weight, fill, kv_spec, forward};
    static uint32_t max_draft_depth(void* self) noexcept {
        if constexpr (kHead) return static_cast<Box<T>*>(self)->value.max_draft_depth();
        return 0;
    }
    static constexpr bool kHead = requires(const T& t) { t.max_draft_depth(); };
    static constexpr pb_draft_head draft_head{sizeof(pb_draft_head), 0, max_draft_depth};
    static pb_status each_key(void*, pb_str architecture, void* ctx, void (*put)(void*, const pb_config_key*)) {
        if constexpr (kListsKeys)
            for (const auto& of : T::kKeys)
                if (std::string_view(of.architecture) == view(architecture))
                    for (const auto& keys : of.tables)
                        for (const auto& key : keys) {
                            const pb_config_key one = to_wire(key);
                            put(ctx, &one);
                        }
        return PB_OK;
    }
    static constexpr bool kListsKeys = requires { T::kKeys; };
    static constexpr pb_model_config_keys config_keys{sizeof(pb_model_config_keys), 0, each_key};
    static constexpr void add_extensions(auto& list) {
        list.add(kListsKeys, PB_MODEL_CONFIG_KEYS, PB_MODEL_CONFIG_KEYS_REVISION, &config_keys);
        list.add(kHead, PB_MODEL_DRAFT_HEAD, PB_MODEL_DRAFT_HEAD_REVISION, &draft_head);
    }
};

}  // namespace detail

template <class T>
constexpr pb_component model(const About& about) {
    return detail::component<T, detail::ModelTable<T>>(PB_MODEL, PB_MODEL_REVISION, about);
}

}  // namespace patchbay
