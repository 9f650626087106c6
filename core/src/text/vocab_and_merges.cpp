#include "text/vocab_and_merges.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "text/json_fields.hpp"
#include "text/known_patterns.hpp"
#include "text/tokenizer_config.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;

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

}  // namespace

Result<json> read_vocab_and_merges(const std::filesystem::path& folder, const json& config) {
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

}  // namespace patchbay::text
