// The model's checks: that it reads a small config.json or says why not, and that what it asks for makes sense.
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "conformance/check.hpp"
#include "conformance/model_forward.hpp"

namespace patchbay::conformance {
namespace {

using Config = std::map<std::string, std::string>;
constexpr uint32_t kMaxWeights = 1u << 20;

// What decoder models call their hyperparameters in config.json.
Config small_config(const pb_model& table) {
    return {{"architectures.0", table.architectures[0]},
            {"hidden_size", "64"},
            {"intermediate_size", "96"},
            {"num_hidden_layers", "2"},
            {"num_attention_heads", "4"},
            {"num_key_value_heads", "2"},
            {"vocab_size", "128"},
            {"max_position_embeddings", "256"},
            {"rms_norm_eps", "1e-05"},
            {"rope_theta", "10000.0"},
            {"hidden_act", "silu"},
            {"tie_word_embeddings", "false"},
            {"n_embd", "64"},
            {"n_inner", "96"},
            {"n_layer", "2"},
            {"n_head", "4"},
            {"n_positions", "256"},
            {"ffn_dim", "96"},
            {"num_experts", "4"}, // so few that a short text has tokens for each
            {"num_local_experts", "4"},
            {"num_experts_per_tok", "2"},
            {"target.hidden_size", "64"}, // for a head
            {"target.vocab_size", "128"}};
}

// The same with one key changed, whatever a model calls it.
Config changed(Config config, const std::string& key, const std::string& value) {
    config[key] = value;
    if (key == "hidden_size") config["n_embd"] = value;
    if (key == "num_hidden_layers") config["n_layer"] = value;
    config["target." + key] = value;
    return config;
}

struct Loaded {
    pb_status status;
    std::string reason; // of a refusal: what the component said
    pb_model_facts facts = sized<pb_model_facts>();
    bool within_bounds = true;
};

Loaded load(const host::Component& component, const Config& config) {
    std::vector<pb_setting> items;
    for (const auto& [key, value] : config) items.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
    const pb_model_config wire{sizeof wire, static_cast<uint32_t>(items.size()), items.data(), 1, 0};
    Loaded out{};
    LentMemory memory;
    pb_model_facts* const facts = memory.lend(sized<pb_model_facts>());
    out.status = static_cast<const pb_model*>(component.type().vtable)
                     ->load_config(component.self(), memory.lend(wire), facts);
    out.facts = *facts;
    out.within_bounds = memory.end_call() && out.facts.struct_size == sizeof out.facts;
    if (out.status != PB_OK) out.reason = component.check(out.status, "load_config").error();
    return out;
}

Outcome architectures(Subject& subject) {
    const pb_model& table = subject.table<pb_model>();
    if (!table.architectures[0] || !table.architectures[0][0]) return fail("it names no architecture of config.json");
    return {};
}

Outcome refuses(Subject& subject) {
    for (const char* key : {"", "hidden_size", "num_hidden_layers", "vocab_size"})
        for (const char* value : {"-1", "0", "many", "99999999999999999999"}) {
            PB_TRY(auto component, subject.make());
            Config config;
            if (*key) config = changed(small_config(subject.table<pb_model>()), key, value);
            const std::string what = *key ? std::string(key) + " " + value : "an empty config.json";
            const Loaded loaded = load(*component, config);
            if (loaded.status == PB_OK) return fail("it accepts " + what);
            if (loaded.reason.ends_with("invalid argument") || loaded.reason.ends_with("failed"))
                return fail("it refuses " + what + " without a reason");
        }
    return {};
}

// A model of another shape may refuse the small configuration; then there is nothing more to look at here.
struct Small {
    std::unique_ptr<host::Component> component;
    Loaded loaded;
};
Result<Small> load_small(Subject& subject) {
    Small out;
    for (const char* activation : {"silu", "gelu_pytorch_tanh"}) { // a family has the one or the other
        PB_TRY(out.component, subject.make());
        out.loaded = load(*out.component, changed(small_config(subject.table<pb_model>()), "hidden_act", activation));
        if (out.loaded.status != PB_UNSUPPORTED) break;
    }
    return out;
}
template <auto Run> // (component, its table, its facts) → Result<> or Outcome
Outcome when_loaded(Subject& subject) {
    PB_TRY(const Small small, load_small(subject));
    if (small.loaded.status == PB_UNSUPPORTED)
        return Outcome::skip("it does not do the small configuration: " + small.loaded.reason);
    if (small.loaded.status != PB_OK) return fail("it refuses a small configuration: " + small.loaded.reason);
    if (!small.loaded.within_bounds) return fail("load_config writes past the end of its facts: see their struct_size");
    return Run(*small.component, subject.table<pb_model>(), small.loaded.facts);
}

Result<> facts(const host::Component& c, const pb_model&, const pb_model_facts& f) {
    const bool layers = f.layer_count == 2 || (f.layer_count == 0 && c.extension<pb_draft_head>());
    if (f.vocab_size == 128 && layers && f.hidden_size == 64 && f.max_position > 0) return {};
    return fail("its facts are vocab_size " + std::to_string(f.vocab_size) + ", layer_count " +
                std::to_string(f.layer_count) + ", hidden_size " + std::to_string(f.hidden_size) + ", max_position " +
                std::to_string(f.max_position) + ", config.json says 128, 2 and 64");
}

template <size_t N>
bool is_text(const char (&text)[N]) {
    return std::memchr(text, 0, N) != nullptr;
}

std::string fault_of(const pb_weight_spec& s, uint32_t index) {
    if (s.role < PB_WEIGHT_LINEAR || s.role > PB_WEIGHT_VECTOR) return "has an unknown role";
    if (s.shard < PB_SHARD_NONE || s.shard > PB_SHARD_COLS) return "is sharded in an unknown way";
    if (s.tied_to > 0) return s.tied_to <= index ? "" : "is the same as one that comes later";
    if (s.cols < 1 || s.cols > 1 << 24) return "has " + std::to_string(s.cols) + " columns";
    if (s.part_count > PB_MAX_FUSED)
        return "fuses " + std::to_string(s.part_count) + " tensors, at most " + std::to_string(PB_MAX_FUSED) +
               " can be";
    if (!(s.uses >> s.role & 1)) return "has `uses` without its own role";
    if (!(s.share >= 0 && s.share <= 1)) return "has a share of " + std::to_string(s.share) + ", expected 0 to 1";
    for (uint32_t p = 0; p < s.part_count; ++p) {
        if (!is_text(s.parts[p].name) || !is_text(s.parts[p].bias) || !s.parts[p].name[0])
            return "has a part without a terminated name";
        if (s.parts[p].rows < 1 || s.parts[p].rows > 1 << 24)
            return "has a part of " + std::to_string(s.parts[p].rows) + " rows";
        if (s.parts[p].first_row < 0 ||
            (s.parts[p].stored_rows && s.parts[p].first_row + s.parts[p].rows > s.parts[p].stored_rows))
            return "takes rows that are not in " + std::string(s.parts[p].name);
    }
    return "";
}

Result<> weights(const host::Component& c, const pb_model& table, const pb_model_facts&) {
    const uint32_t count = table.weight_count(c.self());
    if (count == 0 || count > kMaxWeights) return fail("it has " + std::to_string(count) + " weights");
    std::map<std::pair<std::string, int64_t>, uint32_t> seen; // tensor and its first row
    for (uint32_t i = 0; i < count; ++i) {
        PB_TRY(const pb_weight_spec s, (filled<&pb_model::weight, pb_weight_spec>(c, i)));
        if (const std::string fault = fault_of(s, i); !fault.empty())
            return fail("weight " + std::to_string(i) + " " + fault);
        for (uint32_t p = 0; s.tied_to == 0 && p < s.part_count; ++p)
            if (const auto [at, fresh] = seen.emplace(std::pair(std::string(s.parts[p].name), s.parts[p].first_row), i);
                !fresh)
                return fail("weights " + std::to_string(at->second) + " and " + std::to_string(i) + " both take " +
                            at->first.first);
    }
    return {};
}

Result<> weights_end(const host::Component& c, const pb_model& table, const pb_model_facts&) {
    pb_weight_spec beyond = sized<pb_weight_spec>();
    if (table.weight(c.self(), table.weight_count(c.self()), &beyond) == PB_OK)
        return fail("it describes a weight past its last");
    return {};
}

Result<> fill(const host::Component& c, const pb_model& table, const pb_model_facts&) {
    constexpr float kGuard = 7.5f;
    for (uint32_t i = 0; i < table.weight_count(c.self()); ++i) {
        PB_TRY(const pb_weight_spec s, (filled<&pb_model::weight, pb_weight_spec>(c, i)));
        if (s.part_count > 0 || s.tied_to > 0 || s.of_target != PB_TARGET_NONE) continue;
        if (s.cols < 1 || s.cols > 1 << 24) continue;
        const auto n = static_cast<size_t>(s.cols);
        std::vector<float> values(n + 8, NAN);
        std::fill(values.begin() + s.cols, values.end(), kGuard);
        PB_CHECK(c.check(table.fill(c.self(), i, values.data()), "fill"));
        for (size_t k = 0; k < values.size(); ++k)
            if (k < n ? !std::isfinite(values[k]) : values[k] != kGuard)
                return fail("weight " + std::to_string(i) + " is " +
                            (k < n ? "not filled at " + std::to_string(k) : "filled past its end"));
    }
    return {};
}

Result<> kv(const host::Component& c, const pb_model& m, const pb_model_facts& f) {
    for (uint32_t layer = 0; layer < f.layer_count; ++layer) {
        const std::string who = "layer " + std::to_string(layer) + " ";
        PB_TRY(const pb_kv_spec s, (filled<&pb_model::kv_spec, pb_kv_spec>(c, layer)));
        if (s.kind < PB_KV_FULL || s.kind > PB_KV_RECURRENT) return fail(who + "has KV of an unknown kind");
        if (s.kind == PB_KV_RECURRENT && s.state_bytes == 0) return fail(who + "is recurrent and keeps no state");
        if (s.kind == PB_KV_RECURRENT) continue;
        if (s.kv_heads == 0 || s.heads == 0 || s.heads % s.kv_heads != 0 || s.head_dim == 0)
            return fail(who + "has " + std::to_string(s.heads) + " heads over " + std::to_string(s.kv_heads) +
                        " of KV, of " + std::to_string(s.head_dim));
        if (!std::isfinite(s.scale) || s.scale == 0 || !std::isfinite(s.soft_cap))
            return fail(who + "has no finite scale");
        if ((s.kind == PB_KV_SLIDING) != (s.sliding_window > 0))
            return fail(who + "has a window and is not sliding, or slides without one");
        if (s.kv_source_layer > layer)
            return fail(who + "shares the KV of layer " + std::to_string(s.kv_source_layer - 1) +
                                          ", expected an earlier one's");
        if (s.sinks == 0) continue;
        const std::string where = who + "has its sinks in weight " + std::to_string(s.sinks - 1) + ", ";
        if (s.sinks > m.weight_count(c.self())) return fail(where + "which is not there");
        PB_TRY(const pb_weight_spec w, (filled<&pb_model::weight, pb_weight_spec>(c, s.sinks - 1)));
        if (w.role != PB_WEIGHT_VECTOR || w.cols != s.heads)
            return fail(where + "expected a vector of its " + std::to_string(s.heads) + " heads");
    }
    return {};
}

// Only a head takes weights from its target; a model that can have one says which weights those are.
Result<> heads(const host::Component& c, const pb_model& table, const pb_model_facts& f) {
    const uint32_t count = table.weight_count(c.self());
    const auto* const head = c.extension<pb_draft_head>();
    const bool gives = f.flags & PB_MODEL_GIVES_HIDDEN;
    if (f.flags > PB_MODEL_GIVES_HIDDEN) return fail("its facts have unknown flags");
    if (head && gives) return fail("it is a head, and says that there may be one for it");
    if (head && f.layer_count == 0 && head->max_draft_depth(c.self()) == 0)
        return fail("a head without layers, and it predicts no token");
    if (gives && (f.embedding >= count || f.lm_head >= count))
        return fail("its token table or its lm head is none of its " + std::to_string(count) + " weights");
    for (uint32_t i = 0; i < count; ++i) {
        PB_TRY(const pb_weight_spec s, (filled<&pb_model::weight, pb_weight_spec>(c, i)));
        if (s.of_target < PB_TARGET_NONE || s.of_target > PB_TARGET_LM_HEAD)
            return fail("weight " + std::to_string(i) + " is of no weight that a target has");
        if (s.of_target != PB_TARGET_NONE && !head)
            return fail("weight " + std::to_string(i) + " is a target's, and it is not a head");
        if (s.of_target != PB_TARGET_NONE && (s.part_count > 0 || s.tied_to > 0))
            return fail("weight " + std::to_string(i) + " is the target's, and of a checkpoint too");
        if (gives && i == f.embedding && s.role != PB_WEIGHT_EMBEDDING) return fail("its token table is none");
        if (gives && i == f.lm_head && s.role != PB_WEIGHT_LINEAR) return fail("its lm head makes no logits");
    }
    return {};
}

// What a model computes is looked at where what it says of itself is right.
template <auto Run>
Outcome when_sound(Subject& subject) {
    for (const auto check : {when_loaded<facts>, when_loaded<weights>, when_loaded<heads>, when_loaded<fill>,
                             when_loaded<kv>})
        if (const Outcome outcome = check(subject); outcome.what != Outcome::What::kOk)
            return Outcome::skip(outcome.what == Outcome::What::kSkipped ? outcome.reason : "it fails a check before");
    return when_loaded<Run>(subject);
}

constexpr Check kChecks[] = {
    {"model.architectures", "names the architectures that it serves", architectures},
    {"model.refuses", "refuses a config.json that makes no sense, with a reason", refuses},
    {"model.facts", "reports what config.json says", when_loaded<facts>},
    {"model.weights", "asks for tensors by name, each once, in shapes that make sense", when_loaded<weights>},
    {"model.weights_end", "has no weight past its last", when_loaded<weights_end>},
    {"model.heads", "is a head, or has what heads go on from, or neither", when_loaded<heads>},
    {"model.fill", "fills the weights that it computes, wholly and no further", when_loaded<fill>},
    {"model.kv", "describes the KV of every layer", when_loaded<kv>},
    {"model.forward", "computes finite logits, and the same ones again", when_sound<computes>},
    {"model.causal", "makes logits of all tokens so far and of no later one", when_sound<is_causal>},
    {"model.chunks", "gives a prompt that comes in chunks the same logits and hidden states",
     when_sound<computes_in_pieces>},
    {"model.residual", "adds each layer to the residual stream", when_sound<keeps_the_residual>},
    {"model.uses_weights", "computes with every weight and bias that it lists", when_sound<uses_each_weight>},
    {"model.hidden", "gives the hidden states that the lm head makes its logits of", when_sound<gives_hidden_states>},
};

}  // namespace

const Suite kModel{kChecks, nullptr};

}  // namespace patchbay::conformance
