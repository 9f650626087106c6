#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::weights {
namespace {

constexpr JsonLimits kConfigLimits{.bytes = 16 << 20, .depth = 32};

void flatten(const nlohmann::json& value, const std::string& key, FlatConfig& out) {
    const auto under = [&](const std::string& child) { return key.empty() ? child : key + "." + child; };
    if (value.is_object()) {
        for (const auto& [name, child] : value.items()) flatten(child, under(name), out);
    } else if (value.is_array()) {
        for (size_t i = 0; i < value.size(); ++i) flatten(value[i], under(std::to_string(i)), out);
    } else {
        out[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
}

}  // namespace

Result<FlatConfig> flatten_json(std::string_view text, const std::string& where) {
    PB_TRY(const nlohmann::json value, parse_json(text, where, kConfigLimits));
    if (!value.is_object()) return fail(where + " is not a JSON object");
    FlatConfig out;
    flatten(value, "", out);
    return out;
}

Result<FlatConfig> read_json_flat(const std::filesystem::path& file) {
    PB_TRY(const std::string text, read_whole_file(file, kConfigLimits.bytes));
    return flatten_json(text, file.string());
}

Result<FlatConfig> read_model_config(const std::filesystem::path& folder) {
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) return fail("no model folder " + folder.string());
    if (!std::filesystem::is_directory(folder, error))
        return fail(folder.string() + " is not a folder (a model is a Hugging Face folder)");
    if (!std::filesystem::exists(folder / "config.json", error))
        return fail("no config.json in " + folder.string() + " (is it a Hugging Face model folder?)");
    return read_json_flat(folder / "config.json");
}

}  // namespace patchbay::weights
