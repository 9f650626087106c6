#include "serve/served_model.hpp"

#include <ctime>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "weights/checkpoint.hpp"
#include "weights/gguf_chat.hpp"

namespace patchbay::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Of "…" or {"content": "…"}; empty: neither.
std::string token_text(const json& token) {
    if (token.is_string()) return token.get<std::string>();
    if (token.is_object() && token.contains("content") && token["content"].is_string())
        return token["content"].get<std::string>();
    return {};
}

struct Template {
    std::string text, name; // name: where it is, for errors; text: empty if there is none
};
struct Found { // what the tokenizer's files say of chats
    Template plain, with_tools;
    std::map<std::string, std::string> special_tokens{}; // by name, none of them empty
    std::vector<std::string> additional_special_tokens{};

    // Those that are not known yet, of an object that names them as transformers does.
    void add_tokens(const json& config) {
        for (const char* name :
             {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
            if (config.contains(name)) add_token(name, token_text(config[name]));
        const auto more = config.find("additional_special_tokens");
        if (more == config.end() || !more->is_array() || !additional_special_tokens.empty()) return;
        for (const json& token : *more)
            if (std::string text = token_text(token); !text.empty())
                additional_special_tokens.push_back(std::move(text));
    }
    void add_token(const char* name, std::string text) {
        if (!text.empty()) special_tokens.emplace(name, std::move(text));
    }
};

// Of a file of a tokenizer's folder; empty where it is not there.
Result<json> read_object(const fs::path& file) {
    if (!fs::exists(file)) return json::object();
    PB_TRY(json out, read_json_file(file));
    if (!out.is_object()) return invalid(file.string() + ": expected an object");
    return out;
}

// chat_template of tokenizer_config.json: a text, or a list of {name, template}.
Template listed_template(const json& config, const std::string& name, const fs::path& file) {
    const auto at = config.find("chat_template");
    const std::string where = file.string() + ": chat_template";
    if (at == config.end()) return {};
    if (at->is_string()) return name == "default" ? Template{at->get<std::string>(), where} : Template();
    if (!at->is_array()) return {};
    for (const json& entry : *at)
        if (entry.is_object() && entry.value("name", json()) == name && entry.contains("template") &&
            entry["template"].is_string())
            return {entry["template"].get<std::string>(), where + " '" + name + "'"};
    return {};
}

constexpr uint64_t kMaxTemplateBytes = 4u << 20;

Result<Template> template_file(const fs::path& file) {
    PB_TRY(std::string text, read_whole_file(file, kMaxTemplateBytes));
    return Template{std::move(text), file.string()};
}

// Files of templates count instead of those in tokenizer_config.json, as transformers reads them.
Result<Found> find_in_folder(const fs::path& folder) {
    Found out;
    const fs::path tokenizer_config = folder / "tokenizer_config.json";
    PB_TRY(const json config, read_object(tokenizer_config));
    out.add_tokens(config);
    if (const auto older = read_object(folder / "special_tokens_map.json")) out.add_tokens(*older);
    const fs::path plain = folder / "chat_template.jinja",
                   with_tools = folder / "additional_chat_templates" / "tool_use.jinja";
    const bool has_plain = fs::exists(plain);
    if (has_plain) {
        PB_TRY(out.plain, template_file(plain));
    } else {
        out.plain = listed_template(config, "default", tokenizer_config);
    }
    if (fs::exists(with_tools)) {
        PB_TRY(out.with_tools, template_file(with_tools));
    } else if (!has_plain) {
        out.with_tools = listed_template(config, "tool_use", tokenizer_config);
    }
    return out;
}

// A GGUF file's own, and of what it does not have, what lies beside it.
Result<Found> find_in_gguf(const fs::path& file) {
    PB_TRY(auto own, weights::read_gguf_chat(file));
    const std::string where = file.string() + ": tokenizer.chat_template";
    Found out{{std::move(own.chat_template), where}, {std::move(own.tool_template), where + ".tool_use"}};
    out.add_token("bos_token", std::move(own.bos_token));
    out.add_token("eos_token", std::move(own.eos_token));
    if (!out.plain.text.empty()) return out;
    PB_TRY(Found beside, find_in_folder(file.parent_path()));
    out.plain = std::move(beside.plain);
    if (out.with_tools.text.empty()) out.with_tools = std::move(beside.with_tools);
    out.special_tokens.insert(beside.special_tokens.begin(), beside.special_tokens.end());
    out.additional_special_tokens = std::move(beside.additional_special_tokens);
    return out;
}

Result<std::optional<text::ChatTemplate>> parsed(const Template& source) {
    if (source.text.empty()) return std::optional<text::ChatTemplate>();
    PB_TRY(auto out, refused_as(StatusCode::kInvalid, text::ChatTemplate::parse(source.text, source.name)));
    return std::optional(std::move(out));
}

}  // namespace

Result<> read_chat_templates(ServedModel& out, const fs::path& tokenizer, const std::string& given) {
    const fs::path folder = fs::is_directory(tokenizer) ? tokenizer : tokenizer.parent_path();
    PB_TRY(Found found, weights::is_gguf(tokenizer) ? find_in_gguf(tokenizer) : find_in_folder(folder));
    out.special_tokens = std::move(found.special_tokens);
    out.additional_special_tokens = std::move(found.additional_special_tokens);
    if (!given.empty()) {
        PB_TRY(found.plain, template_file(given));
        found.with_tools = {};
    }
    PB_TRY(out.chat_template, parsed(found.plain));
    PB_TRY(out.tool_template, parsed(found.with_tools));
    const std::string own = weights::is_gguf(tokenizer) ? "neither the GGUF file, chat_template.jinja beside it"
                                                        : "neither chat_template.jinja";
    out.no_template = out.tool_template ? "the model's only chat template is for requests with tools"
                                        : "the model has no chat template: " + own + " nor chat_template of "
                                          "tokenizer_config.json; name a file by --chat-template";
    return {};
}

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
    out.max_logprobs = config.engine.max_logprobs;
    out.hidden_size = engine.facts().model.hidden_size;
    out.tokenizer = engine.tokenizer();
    if (names.generation_config) {
        PB_TRY(out.default_sampling, default_sampling(path));
    }
    out.pooler = read_pooler(config.pooler_config, path);
    const std::string& tokenizer = config.model.tokenizer;
    const fs::path source = tokenizer.empty() ? path : fs::path(tokenizer);
    if (out.tokenizer) PB_CHECK(read_chat_templates(out, source, names.chat_template_file));
    else out.no_template = "the model has no tokenizer, so chats cannot be read";
    return out;
}

}  // namespace patchbay::serve
