#include "serve/pooler.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"

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

Result<engine::PoolingType> pooling_of(const json& pooling, const fs::path& file) {
    if (is_true(pooling, "pooling_mode_lasttoken")) return engine::PoolingType::kLast;
    if (is_true(pooling, "pooling_mode_mean_tokens")) return engine::PoolingType::kMean;
    return fail(StatusCode::kUnsupported, file.string() + ": expected pooling_mode_lasttoken or "
                                                          "pooling_mode_mean_tokens (or set "
                                                          "pooler_config.pooling_type: LAST or MEAN)");
}

// A list of {"type": "sentence_transformers.models.Normalize", …}.
bool has_normalize(const json& modules) {
    if (!modules.is_array()) return false;
    for (const json& module : modules)
        if (module.is_object() && module.contains("type") && module["type"].is_string() &&
            module["type"].get<std::string>().ends_with(".Normalize"))
            return true;
    return false;
}

}  // namespace

Result<Pooler> read_pooler(const config::PoolerSettings& settings, const fs::path& model) {
    using config::PoolingType;
    Pooler out;
    const fs::path file = model / "1_Pooling/config.json";
    PB_TRY(const json pooling, read_if_there(file));
    if (settings.pooling_type != PoolingType::kAuto) {
        out.pooling = settings.pooling_type == PoolingType::kMean ? engine::PoolingType::kMean
                                                                  : engine::PoolingType::kLast;
    } else if (!pooling.is_null()) {
        PB_TRY(out.pooling, pooling_of(pooling, file));
    }
    PB_TRY(const json modules, read_if_there(model / "modules.json"));
    out.normalize = settings.normalize.value_or(modules.is_null() || has_normalize(modules));
    PB_TRY(const json config, read_if_there(model / "config.json"));
    out.is_matryoshka = is_true(config, "is_matryoshka");
    if (!config.is_object() || !config.contains("matryoshka_dimensions")) return out;
    const json& dimensions = config["matryoshka_dimensions"];
    for (size_t i = 0; dimensions.is_array() && i < dimensions.size(); ++i)
        if (dimensions[i].is_number_unsigned()) out.dimensions.push_back(dimensions[i].get<uint32_t>());
    out.is_matryoshka = out.is_matryoshka || !out.dimensions.empty();
    return out;
}

}  // namespace patchbay::serve
