#include "serve/served_model.hpp"

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/refusals.hpp"

namespace patchbay::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// "…" or {"content": "…"}; empty: neither.
std::string token_text(const json& config, const char* key) {
    const auto at = config.find(key);
    if (at == config.end()) return {};
    if (at->is_string()) return at->get<std::string>();
    if (at->is_object() && at->contains("content") && (*at)["content"].is_string())
        return (*at)["content"].get<std::string>();
    return {};
}

// chat_template of tokenizer_config.json: a text, or a list of {name, template} of which "default" counts.
std::string template_text(const json& config) {
    const auto at = config.find("chat_template");
    if (at == config.end()) return {};
    if (at->is_string()) return at->get<std::string>();
    if (!at->is_array()) return {};
    for (const json& entry : *at)
        if (entry.is_object() && entry.value("name", json()) == "default" && entry.contains("template") &&
            entry["template"].is_string())
            return entry["template"].get<std::string>();
    return {};
}

constexpr uint64_t kMaxTemplateBytes = 4u << 20;

Result<> read_template(ServedModel& out, const fs::path& folder, const std::string& given) {
    fs::path file = given;
    if (given.empty() && fs::exists(folder / "chat_template.jinja")) file = folder / "chat_template.jinja";
    json config = json::object();
    const fs::path tokenizer_config = folder / "tokenizer_config.json";
    if (fs::exists(tokenizer_config)) {
        PB_TRY(config, read_json_file(tokenizer_config));
        if (!config.is_object()) return invalid(tokenizer_config.string() + ": expected an object");
    }
    out.bos_token = token_text(config, "bos_token");
    out.eos_token = token_text(config, "eos_token");
    std::string source, name;
    if (!file.empty()) {
        PB_TRY(source, read_whole_file(file, kMaxTemplateBytes));
        name = file.string();
    } else if (source = template_text(config); !source.empty()) {
        name = tokenizer_config.string() + ": chat_template";
    } else {
        out.no_template = "the model has no chat template: neither chat_template.jinja nor chat_template of "
                          "tokenizer_config.json; name a file by --chat-template";
        return {};
    }
    PB_TRY(out.chat_template, refused_as(StatusCode::kInvalid, text::ChatTemplate::parse(source, name)));
    return {};
}

}  // namespace

std::string default_model_name(const fs::path& model) {
    fs::path last = model.lexically_normal();
    if (!last.has_filename()) last = last.parent_path();
    return last.empty() ? "model" : last.filename().string();
}

Result<ServedModel> served_model(const config::EngineConfig& config, const engine::Engine& engine,
                                 const ModelNames& names) {
    ServedModel out;
    const fs::path path = config.model.path;
    out.root = path.string();
    out.names = names.served;
    if (out.names.empty()) out.names = {default_model_name(path)};
    out.created = static_cast<int64_t>(std::time(nullptr));
    out.max_model_len = engine.facts().max_model_len;
    out.vocab_size = engine.facts().model.vocab_size;
    out.hidden_size = engine.facts().model.hidden_size;
    out.tokenizer = engine.tokenizer();
    PB_TRY(out.pooler, read_pooler(config.pooler_config, path));
    const std::string& tokenizer = config.model.tokenizer;
    const fs::path source = tokenizer.empty() ? path : fs::path(tokenizer);
    const fs::path folder = fs::is_directory(source) ? source : source.parent_path();
    if (out.tokenizer) PB_CHECK(read_template(out, folder, names.chat_template_file));
    else out.no_template = "the model has no tokenizer, so chats cannot be read";
    return out;
}

}  // namespace patchbay::serve
