#include "serve/pooler.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "weights/checkpoint.hpp"
#include "weights/gguf_pooling.hpp"

namespace patchbay::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Result<json> read_if_there(const fs::path& file) { // null: it is not there
    if (!fs::exists(file)) return json();
    return read_json_file(file);
}

bool is_true(const json& object, const char* key) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    return at != object.end() && at->is_boolean() && at->get<bool>();
}

// Of flags that say pooling_mode_…: true, or, as newer files have it, of "pooling_mode": "lasttoken".
Result<engine::PoolingType> pooling_of(const json& pooling, const fs::path& file) {
    std::vector<std::string> modes;
    for (const auto& [key, value] : pooling.items()) {
        if (key == "pooling_mode") modes.push_back(value.is_string() ? value.get<std::string>() : value.dump());
        else if (key.starts_with("pooling_mode_") && is_true(pooling, key.c_str())) modes.push_back(key);
    }
    const auto is = [&](const char* mode, const char* flag) {
        return modes.size() == 1 && (modes[0] == mode || modes[0] == flag);
    };
    if (is("lasttoken", "pooling_mode_lasttoken")) return engine::PoolingType::kLast;
    if (is("mean", "pooling_mode_mean_tokens")) return engine::PoolingType::kMean;
    std::string got;
    for (const std::string& mode : modes) got += (got.empty() ? "" : " and ") + printable(mode);
    return unsupported(file.string() + ": the pooling is " + (got.empty() ? "not given" : got) +
                       ", expected lasttoken or mean alone (or set pooler_config.pooling_type: LAST or MEAN)");
}

// Of a list of {"type": "sentence_transformers.models.Normalize", …}, whether the last step of these is in it.
Result<bool> has_normalize(const json& modules, const fs::path& file) {
    if (!modules.is_array()) return invalid(file.string() + ": expected a list of modules");
    bool out = false;
    for (const json& module : modules) {
        if (!module.is_object() || !module.contains("type") || !module["type"].is_string())
            return invalid(file.string() + ": expected modules with a type, got " + printable(module.dump()));
        const auto type = module["type"].get<std::string>();
        const std::string name = type.substr(type.rfind('.') + 1); // npos + 1 is 0
        if (name != "Transformer" && name != "Pooling" && name != "Normalize")
            return unsupported(file.string() + ": the module " + printable(name) +
                               " is not supported, expected Transformer, Pooling and Normalize alone");
        out = out || name == "Normalize";
    }
    return out;
}

Result<engine::PoolingType> pooling_of_gguf(const fs::path& file) {
    PB_TRY(const auto type, weights::read_gguf_pooling(file));
    if (!type || *type == weights::kGgufPoolingLast) return engine::PoolingType::kLast;
    if (*type == weights::kGgufPoolingMean) return engine::PoolingType::kMean;
    return unsupported(file.string() + ": pooling_type is " + std::to_string(*type) +
                       ", expected 1 (mean) or 3 (last) (or set pooler_config.pooling_type: LAST or MEAN)");
}

Result<> read_modules(const config::PoolerSettings& settings, const fs::path& model, Pooler& out) {
    using config::PoolingType;
    const fs::path of_pooling = model / "1_Pooling/config.json", of_modules = model / "modules.json";
    PB_TRY(const json modules, read_if_there(of_modules));
    bool normalize = true;
    if (!modules.is_null()) {
        PB_TRY(normalize, has_normalize(modules, of_modules));
    }
    out.normalize = settings.normalize.value_or(normalize);
    if (settings.pooling_type != PoolingType::kAuto) {
        out.pooling = settings.pooling_type == PoolingType::kMean ? engine::PoolingType::kMean
                                                                  : engine::PoolingType::kLast;
        return {};
    }
    if (weights::is_gguf(model)) {
        PB_TRY(out.pooling, pooling_of_gguf(model));
        return {};
    }
    PB_TRY(const json pooling, read_if_there(of_pooling));
    if (pooling.is_null()) return {};
    PB_TRY(out.pooling, pooling_of(pooling, of_pooling));
    return {};
}

Result<> read_dimensions(const fs::path& model, Pooler& out) {
    PB_TRY(const json config, read_if_there(model / "config.json"));
    out.is_matryoshka = is_true(config, "is_matryoshka");
    if (!config.is_object() || !config.contains("matryoshka_dimensions")) return {};
    const json& dimensions = config["matryoshka_dimensions"];
    for (size_t i = 0; dimensions.is_array() && i < dimensions.size(); ++i)
        if (dimensions[i].is_number_unsigned()) out.dimensions.push_back(dimensions[i].get<uint32_t>());
    out.is_matryoshka = out.is_matryoshka || !out.dimensions.empty();
    return {};
}

}  // namespace

Pooler read_pooler(const config::PoolerSettings& settings, const fs::path& model) {
    Pooler out;
    auto done = read_modules(settings, model, out);
    if (done) done = read_dimensions(model, out);
    if (!done) out.refusal = done.failure();
    return out;
}

}  // namespace patchbay::serve
