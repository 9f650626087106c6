#include "text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
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
    if (!value.is_object()) return fail(file.string() + " is not a JSON object");
    return value;
}

// Where tokenizer_config.json names no end token, the model's own files may; of a list the first.
Result<> find_eos(const fs::path& folder, json& config) {
    for (const char* name : {"generation_config.json", "config.json"}) {
        PB_TRY(const json settings, read_optional(folder / name));
        const auto id = settings.find("eos_token_id");
        if (id == settings.end() || id->is_null()) continue;
        config["eos_token_id"] = id->is_array() && !id->empty() ? id->front() : *id;
        return {};
    }
    return {};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return fail("no tokenizer folder " + folder.string());
    PB_TRY(json config, read_optional(folder / "tokenizer_config.json"));
    PB_CHECK(find_eos(folder, config));
    json tokenizer;
    if (fs::exists(folder / "tokenizer.json", error)) {
        PB_TRY(tokenizer, read_json_file(folder / "tokenizer.json"));
    } else if (fs::exists(folder / "vocab.json", error) && fs::exists(folder / "merges.txt", error)) {
        PB_TRY(tokenizer, read_vocab_and_merges(folder, config));
    } else if (fs::exists(folder / "tokenizer.model", error)) {
        return fail("no tokenizer.json in " + folder.string() +
                    ", only tokenizer.model (sentencepiece), which is not supported");
    } else {
        return fail("no tokenizer.json in " + folder.string());
    }
    return tokenizer_from_json(tokenizer, config, folder.string());
}

}  // namespace patchbay::text
