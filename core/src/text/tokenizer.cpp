#include "text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "text/sentencepiece_tokenizer.hpp"
#include "text/tokenizer_json.hpp"
#include "text/vocab_and_merges.hpp"
#include "text/vocabulary.hpp"

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

// added_tokens.json, {"<token>": id, …}: where older folders have what tokenizer_config.json does not list.
Result<> add_older_tokens(const fs::path& folder, json& config) {
    PB_TRY(const json tokens, read_optional(folder / "added_tokens.json"));
    if (tokens.empty() || config.contains("added_tokens_decoder")) return {};
    for (const auto& [content, id] : tokens.items())
        config["added_tokens_decoder"][id.dump()] = {{"content", content}, {"special", false}};
    return {};
}

// tiktoken's format, as Meta gives its own tokenizer.model since Llama 3: a line for each token, "aGVsbG8= 345".
bool is_tiktoken(std::string_view file) {
    const std::string_view line = file.substr(0, file.find('\n'));
    const size_t space = line.find(' ');
    if (space == line.npos || space == 0 || line.size() > kMaxTokenBytes * 2) return false;
    const auto only = [](std::string_view text, std::string_view of) {
        return !text.empty() && text.find_first_not_of(of) == text.npos;
    };
    constexpr std::string_view kDigits = "0123456789";
    constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    std::string_view rank = line.substr(space + 1);
    if (rank.ends_with('\r')) rank.remove_suffix(1);
    return space % 4 == 0 && only(line.substr(0, space), kBase64) && only(rank, kDigits);
}

Result<std::shared_ptr<const Tokenizer>> load_sentencepiece(const fs::path& file, json config) {
    PB_TRY(const std::string bytes, read_whole_file(file, JsonLimits{}.bytes));
    if (is_tiktoken(bytes))
        return fail(file.string() +
                    " has tiktoken's format, which does not say how text is split; SentencePiece's was expected: add "
                    "the tokenizer.json of the model's Hugging Face folder");
    auto model = parse_sentencepiece(bytes);
    if (!model) return fail(file.string() + ": " + model.error());
    return sentencepiece_tokenizer(*model, std::move(config), file.parent_path().string());
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return fail("no tokenizer folder " + folder.string());
    PB_TRY(json config, read_optional(folder / "tokenizer_config.json"));
    const auto has = [&](const char* name) { return fs::exists(folder / name, error); };
    json tokenizer;
    if (has("tokenizer.json")) {
        PB_TRY(tokenizer, read_json_file(folder / "tokenizer.json"));
    } else if (has("vocab.json") && has("merges.txt")) {
        PB_CHECK(add_older_tokens(folder, config));
        PB_TRY(tokenizer, read_vocab_and_merges(folder, config));
    } else if (has("tokenizer.model")) {
        PB_CHECK(add_older_tokens(folder, config));
        return load_sentencepiece(folder / "tokenizer.model", std::move(config));
    } else {
        return fail("no tokenizer.json in " + folder.string() +
                    ", and neither vocab.json with merges.txt nor tokenizer.model");
    }
    return tokenizer_from_json(tokenizer, config, folder.string());
}

}  // namespace patchbay::text
