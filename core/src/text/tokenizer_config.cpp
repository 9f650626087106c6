#include "text/tokenizer_config.hpp"

#include <charconv>

#include "text/json_fields.hpp"
#include "text/post_processor.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;

// "…" or {"content": "…"}.
std::string content_of(const json& token) { return text_or(token.is_object() ? member(token, "content") : token, ""); }

std::optional<TokenId> named_token(const json& config, const char* key, const Vocabulary& vocabulary) {
    const std::string name = content_of(member(config, key));
    return name.empty() ? std::nullopt : vocabulary.find(name);
}

// flag: add_bos_token or add_eos_token; ids: before or after a text, `at` where the token belongs.
Result<> apply_flag(const json& config, const std::string& which, std::vector<TokenId>& ids, bool front,
                    const Vocabulary& vocabulary) {
    const json& wanted = member(config, ("add_" + which).c_str());
    if (!wanted.is_boolean()) return {};
    const auto token = named_token(config, which.c_str(), vocabulary);
    if (wanted.get<bool>() && !token)
        return fail("tokenizer_config.json: add_" + which + " is true, but there is no " + which +
                    " of the vocabulary");
    const bool has = token && !ids.empty() && (front ? ids.front() : ids.back()) == *token;
    const auto place = front ? ids.begin() : ids.end();
    if (wanted.get<bool>() && !has) ids.insert(place, *token);
    if (!wanted.get<bool>() && has) ids.erase(front ? ids.begin() : ids.end() - 1);
    return {};
}

}  // namespace

Result<std::vector<AddedToken>> read_added_tokens(const json& list) {
    std::vector<AddedToken> out;
    if (list.is_null()) return out;
    if (!list.is_array()) return fail("'added_tokens' is not a list");
    for (const json& entry : list) {
        AddedToken token;
        token.content = text_or(member(entry, "content"), "");
        if (token.content.empty()) return fail("added token " + std::to_string(out.size()) + " has no 'content'");
        PB_TRY(token.id, read_token_id(member(entry, "id"), token.content));
        token.special = is_true(member(entry, "special"));
        token.single_word = is_true(member(entry, "single_word"));
        token.lstrip = is_true(member(entry, "lstrip"));
        token.rstrip = is_true(member(entry, "rstrip"));
        token.normalized = is_true(member(entry, "normalized"));
        out.push_back(std::move(token));
    }
    return out;
}

Result<json> listed_added_tokens(const json& config) {
    json out = json::array();
    const json& listed = member(config, "added_tokens_decoder");
    if (!listed.is_object()) return out;
    for (const auto& [key, entry] : listed.items()) {
        int id = -1;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (error != std::errc() || end != key.data() + key.size() || !entry.is_object())
            return fail("tokenizer_config.json: added_tokens_decoder has the entry '" + key + "', which is no token");
        out.push_back(entry);
        out.back()["id"] = id;
    }
    return out;
}

std::vector<std::string> named_special_tokens(const json& config) {
    std::vector<std::string> out;
    const auto add = [&](const json& token) {
        if (std::string content = content_of(token); !content.empty()) out.push_back(std::move(content));
    };
    for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
        add(member(config, key));
    if (const json& more = member(config, "additional_special_tokens"); more.is_array())
        for (const json& token : more) add(token);
    return out;
}

Result<> apply_config(const json& config, PipelineTokenizer::Parts& out) {
    if (const auto eos = named_token(config, "eos_token", out.vocabulary)) out.eos = eos;
    PB_CHECK(apply_flag(config, "bos_token", out.prefix, true, out.vocabulary));
    return apply_flag(config, "eos_token", out.suffix, false, out.vocabulary);
}

}  // namespace patchbay::text
