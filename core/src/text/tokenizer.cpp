#include "text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "text/sentencepiece_tokenizer.hpp"
#include "text/tiktoken.hpp"
#include "text/tokenizer_json.hpp"
#include "text/vocab_and_merges.hpp"

namespace patchbay::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Result<json> read_optional(const fs::path& file) {
    std::error_code error;
    if (!fs::exists(file, error)) return json::object();
    PB_TRY(json value, read_json_file(file));
    if (!value.is_object()) return invalid(file.string() + " is not a JSON object");
    return value;
}

// added_tokens.json, {"<token>": id, …}: where older folders have what tokenizer_config.json does not list.
Result<> add_older_tokens(const fs::path& folder, json& config) {
    PB_TRY(const json tokens, read_optional(folder / "added_tokens.json"));
    if (tokens.empty() || config.contains("added_tokens_decoder")) return {};
    for (const auto& [content, id] : tokens.items())
        config["added_tokens_decoder"][id.dump()] = {{"content", content}, {"special", false}};
    return {};
}

// A SentencePiece model or a rank file.
Result<std::shared_ptr<const Tokenizer>> load_model_file(const fs::path& file, json config) {
    PB_TRY(const std::string bytes, read_whole_file(file, JsonLimits{}.bytes));
    if (is_tiktoken(bytes)) return tiktoken_tokenizer(bytes, config, file.filename().string(), file.string());
    auto model = parse_sentencepiece(bytes);
    if (!model) return prefixed(file.string(), model.failure());
    return sentencepiece_tokenizer(*model, std::move(config), file.parent_path().string());
}

// A folder's file that says most.
Result<fs::path> main_file(const fs::path& folder) {
    std::error_code error;
    const auto has = [&](const char* name) { return fs::exists(folder / name, error); };
    if (has("tokenizer.json")) return folder / "tokenizer.json";
    if (has("vocab.json") && has("merges.txt")) return folder / "vocab.json";
    for (const char* name : {"tokenizer.model", "tiktoken.model"})
        if (has(name)) return folder / name;
    return not_found("no tokenizer.json in " + folder.string() +
                     ", and neither vocab.json with merges.txt nor tokenizer.model");
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const fs::path& given) {
    std::error_code error;
    fs::path file = given;
    if (fs::is_directory(given, error)) {
        PB_TRY(file, main_file(given));
    } else if (!fs::exists(given, error)) {
        return not_found("no tokenizer folder " + given.string());
    }
    const fs::path folder = file.parent_path(), name = file.filename();
    PB_TRY(json config, read_optional(folder / "tokenizer_config.json"));
    if (name == "vocab.json" || name == "merges.txt") {
        PB_CHECK(add_older_tokens(folder, config));
        PB_TRY(const json tokenizer, read_vocab_and_merges(folder, config));
        return tokenizer_from_json(tokenizer, config, folder.string());
    }
    if (name.extension() == ".json") {
        PB_TRY(const json tokenizer, read_json_file(file));
        return tokenizer_from_json(tokenizer, config, given.string());
    }
    PB_CHECK(add_older_tokens(folder, config));
    return load_model_file(file, std::move(config));
}

}  // namespace patchbay::text
