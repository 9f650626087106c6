#include "text/tokenizer_config.hpp"

#include <string>
#include <unordered_map>
#include <utility>

#include "base/numbers.hpp"
#include "base/refusals.hpp"
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
        return invalid("tokenizer_config.json: add_" + which + " is true, but there is no " + which +
                       " of the vocabulary");
    const bool has = token && !ids.empty() && (front ? ids.front() : ids.back()) == *token;
    const auto place = front ? ids.begin() : ids.end();
    if (wanted.get<bool>() && !has) ids.insert(place, *token);
    if (!wanted.get<bool>() && has) ids.erase(front ? ids.begin() : ids.end() - 1);
    return {};
}

// The special tokens that the config only names. They need not be in the vocabulary.
std::vector<std::string> named_special_tokens(const json& config) {
    std::vector<std::string> out;
    const auto add = [&](const json& token) {
        if (std::string content = content_of(token); !content.empty()) out.push_back(std::move(content));
    };
    for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
        add(member(config, key));
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
        if (const json& more = member(config, key); more.is_structured())
            for (const json& token : more) add(token); // of a list, or the values of an object
    return out;
}

class AddedIndex { // of a list, by content
  public:
    explicit AddedIndex(std::vector<AddedToken>& tokens) : tokens_(tokens) {
        for (size_t i = 0; i < tokens_.size(); ++i) places_.try_emplace(tokens_[i].content, i);
    }
    AddedToken* find(const std::string& content) {
        const auto at = places_.find(content);
        return at == places_.end() ? nullptr : &tokens_[at->second];
    }
    void push(AddedToken token) {
        places_.emplace(token.content, tokens_.size());
        tokens_.push_back(std::move(token));
    }

  private:
    std::vector<AddedToken>& tokens_;
    std::unordered_map<std::string, size_t> places_;
};

}  // namespace

Result<std::vector<AddedToken>> read_added_tokens(const json& list) {
    std::vector<AddedToken> out;
    if (list.is_null()) return out;
    if (!list.is_array()) return invalid("'added_tokens' is not a list");
    for (const json& entry : list) {
        AddedToken token;
        token.content = text_or(member(entry, "content"), "");
        if (token.content.empty()) return invalid("added token " + std::to_string(out.size()) + " has no 'content'");
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
        const auto id = parse_number<int>(key);
        if (!id || !entry.is_object())
            return invalid("tokenizer_config.json: added_tokens_decoder has the entry '" + key +
                           "', which is not a token");
        out.push_back(entry);
        out.back()["id"] = *id;
    }
    return out;
}

Result<> add_listed_tokens(const json& config, const Vocabulary& vocabulary, std::vector<AddedToken>& added) {
    PB_TRY(const json list, listed_added_tokens(config));
    PB_TRY(auto listed, read_added_tokens(list));
    AddedIndex known(added);
    for (AddedToken& token : listed) {
        if (AddedToken* const same = known.find(token.content)) {
            token.id = same->id;
            *same = std::move(token);
        } else if (const auto id = vocabulary.find(token.content)) { // which counts, whatever id it is listed with
            token.id = *id;
            known.push(std::move(token));
        }
    }
    return {};
}

void add_named_tokens(const json& config, const Vocabulary& vocabulary, NamedTokens named,
                      std::vector<AddedToken>& added) {
    AddedIndex known(added);
    for (const std::string& name : named_special_tokens(config)) {
        AddedToken* const same = known.find(name);
        if (same) same->special = true;
        const auto id = same || named == NamedTokens::kFoundIfListed ? std::nullopt : vocabulary.find(name);
        if (!id) continue;
        AddedToken token;
        token.id = *id;
        token.content = name;
        token.special = true;
        known.push(std::move(token));
    }
}

Result<> apply_config(const json& config, PipelineTokenizer::Parts& out) {
    if (const auto eos = named_token(config, "eos_token", out.vocabulary)) out.eos = eos;
    PB_CHECK(apply_flag(config, "bos_token", out.prefix, true, out.vocabulary));
    return apply_flag(config, "eos_token", out.suffix, false, out.vocabulary);
}

}  // namespace patchbay::text
