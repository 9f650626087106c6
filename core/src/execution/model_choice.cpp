#include "execution/model_choice.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/cores.hpp"
#include "base/printable.hpp"
#include "weights/stored_head.hpp"

namespace patchbay::execution {
namespace {

struct OpenModel {
    weights::FlatConfig config;
    weights::WeightSource source;
    std::string note{};
};

Result<OpenModel> open_model(const config::EngineConfig& c, Numbers numbers) {
    if (c.model.load_format == config::LoadFormat::kDummy) {
        weights::FlatConfig shape = c.model.shape;
        if (shape.empty()) {
            if (c.model.path.empty()) return fail(StatusCode::kInvalid,
                                                  "load_format dummy needs `shape:` or a folder with config.json");
            PB_TRY(shape, weights::read_model_config(c.model.path));
        }
        if (numbers == Numbers::kNone) {
            PB_TRY(auto source, weights::WeightSource::shapes(shape));
            return OpenModel{std::move(shape), std::move(source)};
        }
        return OpenModel{std::move(shape), weights::WeightSource::dummy(c.engine.seed)};
    }
    if (c.model.path.empty())
        return fail(StatusCode::kInvalid,
                    "no model: give a Hugging Face folder or a GGUF file, or load_format: dummy with a shape");
    PB_TRY(auto config, weights::read_model_config(c.model.path));
    if (numbers == Numbers::kNone) {
        if (weights::is_gguf(c.model.path) && c.model.quantization == config::Quantization::kAuto)
            return fail(StatusCode::kInvalid,
                        "a GGUF file's weights are not looked at where nothing is computed: say by quantization (none, "
                        "int8 or int4) what they are like");
        PB_TRY(auto source, weights::WeightSource::shapes(config));
        return OpenModel{std::move(config), std::move(source)};
    }
    PB_TRY(auto source, weights::WeightSource::from_folder(c.model.path));
    PB_TRY(const std::string note, weights::settle_head(config, source));
    return OpenModel{std::move(config), std::move(source), note};
}

std::string value_of(const weights::FlatConfig& config, const std::string& key) {
    const auto at = config.find(key);
    return at == config.end() ? "" : at->second;
}

pb_dtype wire(config::DType dtype, pb_dtype automatic) {
    switch (dtype) {
        case config::DType::kF32: return PB_F32;
        case config::DType::kBf16: return PB_BF16;
        case config::DType::kAuto: break;
    }
    return automatic;
}

pb_dtype wire(config::KvDType dtype, pb_dtype automatic) {
    switch (dtype) {
        case config::KvDType::kF32: return PB_F32;
        case config::KvDType::kBf16: return PB_BF16;
        case config::KvDType::kFp8: return PB_FP8;
        case config::KvDType::kInt8: return PB_I8;
        case config::KvDType::kAuto: break;
    }
    return automatic;
}

weights::Quantization wire(config::Quantization quantization) {
    switch (quantization) {
        case config::Quantization::kAuto: return weights::Quantization::kAsStored;
        case config::Quantization::kInt8: return weights::Quantization::kInt8;
        case config::Quantization::kInt4: return weights::Quantization::kInt4;
        case config::Quantization::kNone: break;
    }
    return weights::Quantization::kNone;
}

// int8 is near enough with long groups, which are faster where rows are many; int4 is not.
uint32_t rounding_group(const config::ModelSettings& m) {
    if (m.quantization_group_size) return *m.quantization_group_size;
    return m.quantization == config::Quantization::kInt8 ? 128 : 32;
}

// The value that is left open, or null.
config::Node* untold(config::Node& root, const std::string& section, const std::string& key) {
    for (config::Entry& outer : root.entries)
        if (outer.key == section)
            for (config::Entry& inner : outer.value.entries)
                if (inner.key == key && inner.value.origin.kind == config::Origin::Kind::kDefault) return &inner.value;
    return nullptr;
}

// What dtype: auto makes of a checkpoint of f16.
constexpr const char* kOfF16 = "bfloat16, which takes as much memory and rounds them to 8 bits (dtype: float32 keeps "
                               "all 11, in twice the memory)";

std::string dtype_reason(const ModelChoice& m, bool dummy) {
    if (m.source.stores_f16(m.config)) return std::string(kOfF16) + ": the weights are float16";
    return dtype_word(m.weights.dtype) + std::string(dummy ? ", by the shape" : ", as in the checkpoint");
}

std::string length_reason(const config::EngineSettings& e, const weights::FlatConfig& model) {
    const std::string positions = value_of(model, "max_position_embeddings");
    return (positions.empty() ? "what the model reaches" : positions + ", max_position_embeddings of the model") +
           (e.enable_chunked_prefill ? "" : ", or what fits a step") + ", or what the KV cache holds";
}

}  // namespace

config::EngineConfig with_weights(config::EngineConfig c, const std::string& path) {
    c.model.path = path;
    c.model.load_format = config::LoadFormat::kAuto;
    c.model.shape.clear();
    return c;
}

Result<ModelChoice> choose_model(const config::EngineConfig& c, const host::Registry& registry, Numbers numbers) {
    PB_TRY(OpenModel model, in_one_line(open_model(c, numbers)));
    const auto named = weights::single_value(model.config, "architectures.0");
    if (!named) return prefixed(c.model.path, named.failure());
    const std::string architecture = named->value_or("");
    std::string plugin = c.model.plugin;
    if (plugin == "auto") {
        PB_TRY(plugin, registry.model_for(architecture));
    }
    PB_TRY(const pb_dtype native, model.source.native_dtype(model.config));
    if (c.model.dtype == config::DType::kAuto && model.source.stores_f16(model.config))
        model.note += (model.note.empty() ? "" : "; ") + std::string("its weights are float16 and become ") + kOfF16;
    const weights::WeightForm form{wire(c.model.dtype, native), wire(c.model.quantization),
                                   rounding_group(c.model)};
    runner::KvDTypes kv{wire(c.engine.kv_cache_dtype, form.dtype), {}};
    for (const config::KvDTypeOfLayers& l : c.engine.kv_cache_dtype_layers)
        kv.others.push_back({l.layers, l.first, l.count, wire(l.dtype, form.dtype)});
    return ModelChoice{std::move(model.config), std::move(model.source), architecture,          std::move(plugin), form,
                       std::move(kv),           std::move(model.note)};
}

namespace {

// As models read it: at the top, or beside the scaling's keys. Empty: it is not there.
std::string original_positions(const weights::FlatConfig& config) {
    const std::string name = "original_max_position_embeddings";
    const std::string at_top = value_of(config, name);
    if (!at_top.empty()) return at_top;
    for (const auto& [key, value] : config)
        if (key.ends_with("." + name)) return value;
    return "";
}

}  // namespace

uint32_t position_length(const weights::FlatConfig& config, uint32_t max_model_len) {
    const bool is_phi3 = value_of(config, "architectures.0") == "Phi3ForCausalLM"; // there both are names of longrope
    for (const auto& [key, type] : config) {
        const bool is_type = key.ends_with("rope_type") || key.ends_with("rope_scaling.type") ||
                             key.ends_with("rope_parameters.type");
        const bool is_longrope = type == "longrope" || (is_phi3 && (type == "su" || type == "yarn"));
        if (!is_type || !(is_longrope || type == "dynamic")) continue;
        const std::string positions = value_of(config, "max_position_embeddings");
        const std::string original = is_longrope ? original_positions(config) : "";
        // Up to the original range all have the same positions.
        const double range = std::strtod((original.empty() ? positions : original).c_str(), nullptr);
        return max_model_len > range ? max_model_len : 0;
    }
    return 0;
}

uint32_t choose_threads(const config::EngineSettings& e, uint32_t ranks_here) {
    return e.threads ? e.threads : std::max(1u, usable_cores() / ranks_here);
}

const char* dtype_word(pb_dtype t) { return t == PB_F32 ? "float32" : "bfloat16"; }

void explain_automatic(config::Loaded& loaded, const host::Registry& registry) {
    const config::EngineConfig& c = loaded.config;
    const auto say = [&](const char* section, const char* key, bool is_automatic, const std::string& reason) {
        config::Node* value = untold(loaded.effective, section, key);
        if (value && is_automatic) value->origin = config::Origin::automatic(reason);
    };
    say("engine", "threads", c.engine.threads == 0,
        std::to_string(choose_threads(c.engine)) + ", the cores that this process may use");
    say("engine", "num_blocks", c.engine.num_blocks == 0, "as many as kv_cache_memory holds");
    say("model", "tokenizer", c.model.tokenizer.empty(),
        c.model.path.empty() ? "none, the model has no folder" : "the model's folder");

    const auto model = choose_model(c, registry, Numbers::kSome);
    // A model that cannot be opened is a fault of the run, not of the file that names it.
    const auto chosen = [&](auto what) { return model ? what(*model) : "not known here: " + model.error(); };
    const bool dummy = c.model.load_format == config::LoadFormat::kDummy;
    say("model", "plugin", c.model.plugin == "auto",
        chosen([](const ModelChoice& m) { return m.plugin + ", which serves " + m.architecture; }));
    say("model", "dtype", c.model.dtype == config::DType::kAuto,
        chosen([&](const ModelChoice& m) { return dtype_reason(m, dummy); }));
    say("model", "quantization", c.model.quantization == config::Quantization::kAuto,
        chosen([&](const ModelChoice& m) {
            return dummy ? "none, of dummy weights" : m.source.stored_quantization() + ", as in the checkpoint";
        }));
    const bool rounds =
        c.model.quantization == config::Quantization::kInt8 || c.model.quantization == config::Quantization::kInt4;
    say("model", "quantization_group_size", rounds && !c.model.quantization_group_size,
        std::to_string(rounding_group(c.model)) + " columns");
    say("engine", "kv_cache_dtype", c.engine.kv_cache_dtype == config::KvDType::kAuto,
        chosen([](const ModelChoice& m) {
            return dtype_word(m.kv_dtypes.default_dtype) + std::string(", as the weights");
        }));
    say("engine", "max_model_len", c.engine.max_model_len == 0,
        chosen([&](const ModelChoice& m) { return length_reason(c.engine, m.config); }));
}

}  // namespace patchbay::execution
