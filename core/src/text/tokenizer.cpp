#include "text/tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "text/json_fields.hpp"
#include "text/known_patterns.hpp"
#include "text/sentencepiece_tokenizer.hpp"
#include "text/tiktoken.hpp"
#include "text/tokenizer_config.hpp"
#include "text/tokenizer_json.hpp"

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

json read_merges(std::string_view text) {
    json out = json::array();
    for (bool first = true; !text.empty(); first = false) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty() && !(first && line.starts_with("#version"))) out.push_back(line);
    }
    return out;
}

// The tokenizer.json that a folder of the older form stands for: a byte-level tokenizer's vocab.json and merges.txt,
// with the rest implied by the name of a class. config: its tokenizer_config.json.
Result<json> read_vocab_and_merges(const fs::path& folder, const json& config) {
    const std::string name = text_or(member(config, "tokenizer_class"), "");
    const bool qwen2 = name == "Qwen2Tokenizer" || name == "Qwen2TokenizerFast";
    if (!qwen2 && name != "GPT2Tokenizer" && name != "GPT2TokenizerFast")
        return unsupported("the tokenizer of " + folder.string() + " has no tokenizer.json, and its class '" + name +
                           "' does not say how text is split (supported without one: GPT2Tokenizer, Qwen2Tokenizer)");
    PB_TRY(json vocab, read_json_file(folder / "vocab.json"));
    PB_TRY(const std::string merges, read_whole_file(folder / "merges.txt", JsonLimits{}.bytes));
    PB_TRY(json added, listed_added_tokens(config));
    json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", !qwen2}};
    json out = {{"model", {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", read_merges(merges)}}},
                {"added_tokens", std::move(added)}};
    if (qwen2) {
        const json split = {{"type", "Split"}, {"pattern", {{"Regex", kQwen2Pattern}}}, {"behavior", "Isolated"}};
        out["normalizer"] = {{"type", "NFC"}};
        out["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array({split, byte_level})}};
    } else {
        byte_level["add_prefix_space"] = is_true(member(config, "add_prefix_space"));
        out["pre_tokenizer"] = byte_level;
    }
    return out;
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
