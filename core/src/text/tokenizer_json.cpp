#include "text/tokenizer_json.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "text/byte_level_tokenizer.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;

const json& member(const json& object, const char* key) { // null where absent
    static const json kNull;
    if (!object.is_object()) return kNull;
    const auto at = object.find(key);
    return at == object.end() ? kNull : *at;
}

std::string text_or(const json& value, const std::string& fallback) {
    return value.is_string() ? value.get<std::string>() : fallback;
}
bool is_true(const json& value) { return value.is_boolean() && value.get<bool>(); }

std::string type_of(const json& part) { return text_or(member(part, "type"), ""); }

Result<TokenId> token_id(const json& value, const std::string& token) {
    if (!value.is_number_integer() || value < 0 || value > kMostTokenId)
        return fail("token '" + token + "' has id " + value.dump().substr(0, 40) + "; ids go from 0 to " +
                    std::to_string(kMostTokenId));
    return value.get<TokenId>();
}

Result<> check_model(const json& model) {
    if (!model.is_object()) return fail("there is no 'model'");
    const std::string type = text_or(member(model, "type"), "BPE"); // old files have none
    if (type != "BPE") return fail("model type '" + type + "' is not supported (supported: byte-level BPE)");
    if (!member(model, "vocab").is_object()) return fail("the model has no object 'vocab'");
    if (!member(model, "merges").is_array()) return fail("the model has no list 'merges'");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (const std::string text = text_or(member(model, key), ""); !text.empty())
            return fail(std::string("model: ") + key + " '" + text + "' is not supported");
    if (const json& dropout = member(model, "dropout"); dropout.is_number() && dropout != 0)
        return fail("model: dropout " + dropout.dump() + " is not supported, encoding would be random");
    return {};
}

// "a b" or ["a", "b"].
Result<std::vector<Bpe::Pair>> read_merges(const json& list) {
    std::vector<Bpe::Pair> out;
    out.reserve(list.size());
    for (const json& merge : list) {
        const auto bad = [&] {
            return fail("merge " + std::to_string(out.size()) + " is " + merge.dump(-1, ' ', true).substr(0, 80) +
                        ", not two tokens");
        };
        if (merge.is_string()) {
            const auto& text = merge.get_ref<const std::string&>();
            const size_t space = text.find(' ');
            if (space == text.npos || space == 0 || space + 1 == text.size() || text.find(' ', space + 1) != text.npos)
                return bad();
            out.emplace_back(text.substr(0, space), text.substr(space + 1));
        } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
            out.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        } else {
            return bad();
        }
    }
    return out;
}

Result<std::vector<AddedToken>> read_added(const json& list) {
    constexpr size_t kMostContent = 1024; // bytes: bounds the search at every position of a text
    std::vector<AddedToken> out;
    if (list.is_null()) return out;
    if (!list.is_array()) return fail("'added_tokens' is not a list");
    for (const json& entry : list) {
        AddedToken token;
        token.content = text_or(member(entry, "content"), "");
        if (token.content.empty()) return fail("added token " + std::to_string(out.size()) + " has no 'content'");
        if (token.content.size() > kMostContent)
            return fail("an added token of " + std::to_string(token.content.size()) + " bytes is longer than " +
                        std::to_string(kMostContent));
        PB_TRY(token.id, token_id(member(entry, "id"), token.content));
        token.special = is_true(member(entry, "special"));
        token.single_word = is_true(member(entry, "single_word"));
        token.lstrip = is_true(member(entry, "lstrip"));
        token.rstrip = is_true(member(entry, "rstrip"));
        token.normalized = is_true(member(entry, "normalized"));
        out.push_back(std::move(token));
    }
    return out;
}

Result<> check_decoder(const json& decoder) {
    if (decoder.is_null() || type_of(decoder) == "ByteLevel") return {};
    if (type_of(decoder) == "Sequence" && member(decoder, "decoders").is_array()) {
        for (const json& each : member(decoder, "decoders")) PB_CHECK(check_decoder(each));
        return {};
    }
    return fail("decoder type '" + type_of(decoder) + "' is not supported (supported: ByteLevel)");
}

// The ids before and after a text, of TemplateProcessing's `single`.
Result<> read_template(const json& part, ByteLevelTokenizer::Parts& out) {
    const json& single = member(part, "single");
    if (!single.is_array()) return fail("TemplateProcessing has no list 'single'");
    bool after = false;
    for (const json& piece : single) {
        if (!member(piece, "Sequence").is_null()) {
            if (after) return fail("TemplateProcessing: 'single' with the text twice is not supported");
            after = true;
            continue;
        }
        const std::string name = text_or(member(member(piece, "SpecialToken"), "id"), "");
        const json& ids = member(member(member(part, "special_tokens"), name.c_str()), "ids");
        if (!ids.is_array()) return fail("TemplateProcessing: no ids for '" + name + "'");
        for (const json& value : ids) {
            PB_TRY(const TokenId id, token_id(value, name));
            if (out.vocabulary.kind(id) == TokenKind::kUnused)
                return fail("TemplateProcessing: id " + std::to_string(id) + " of '" + name +
                            "' is not in the vocabulary");
            (after ? out.suffix : out.prefix).push_back(id);
        }
    }
    return {};
}

Result<> read_post_processor(const json& part, ByteLevelTokenizer::Parts& out) {
    const std::string type = type_of(part);
    if (part.is_null() || type == "ByteLevel") return {}; // ByteLevel's only moves offsets
    if (type == "TemplateProcessing") return read_template(part, out);
    if (type == "Sequence" && member(part, "processors").is_array()) {
        for (const json& each : member(part, "processors")) PB_CHECK(read_post_processor(each, out));
        return {};
    }
    return fail("type '" + type + "' is not supported (supported: ByteLevel, TemplateProcessing, Sequence)");
}

// A token of tokenizer_config.json: "…" or {"content": "…"}.
std::optional<TokenId> named_token(const json& config, const char* key, const Vocabulary& vocabulary) {
    const json& value = member(config, key);
    const std::string name = text_or(value.is_object() ? member(value, "content") : value, "");
    return name.empty() ? std::nullopt : vocabulary.find(name);
}

// tokenizer_config.json's add_bos_token, where given, says more than the post-processor.
Result<> apply_config(const json& config, ByteLevelTokenizer::Parts& out) {
    out.eos = named_token(config, "eos_token", out.vocabulary);
    if (const json& id = member(config, "eos_token_id");
        !out.eos && id.is_number_integer() && id >= 0 && id < out.vocabulary.size())
        out.eos = id.get<TokenId>();
    const json& add_bos = member(config, "add_bos_token");
    if (!add_bos.is_boolean()) return {};
    const auto bos = named_token(config, "bos_token", out.vocabulary);
    const bool has = bos && !out.prefix.empty() && out.prefix.front() == *bos;
    if (add_bos.get<bool>() && !bos)
        return fail("tokenizer_config.json: add_bos_token is true, but there is no bos_token of the vocabulary");
    if (add_bos.get<bool>() && !has) out.prefix.insert(out.prefix.begin(), *bos);
    if (!add_bos.get<bool>() && has) out.prefix.erase(out.prefix.begin());
    return {};
}

Result<std::shared_ptr<const Tokenizer>> build(const json& tokenizer, const json& config) {
    const json& model = member(tokenizer, "model");
    PB_CHECK(check_model(model));
    PB_CHECK(check_decoder(member(tokenizer, "decoder")));
    PB_TRY(auto normalizer, Normalizer::from_json(member(tokenizer, "normalizer")));
    PB_TRY(auto pre_tokenizer, PreTokenizer::from_json(member(tokenizer, "pre_tokenizer")));
    Vocabulary vocabulary;
    for (const auto& [spelled, value] : model["vocab"].items()) {
        PB_TRY(const TokenId id, token_id(value, spelled));
        PB_CHECK(vocabulary.add(spelled, id));
    }
    PB_TRY(const auto merges, read_merges(model["merges"]));
    PB_TRY(auto bpe,
           Bpe::create(vocabulary, merges,
                       is_true(member(model, "ignore_merges")) ? WholeWords::kLookedUp : WholeWords::kMerged));
    PB_TRY(auto added, read_added(member(tokenizer, "added_tokens")));
    AddedTokens raw, normalized;
    for (AddedToken& token : added) {
        PB_CHECK(
            vocabulary.add_added(token.content, token.id, token.special ? TokenKind::kSpecial : TokenKind::kAdded));
        std::string storage;
        if (token.normalized) token.content = normalizer.apply(token.content, storage);
        (token.normalized ? normalized : raw).add(std::move(token));
    }
    ByteLevelTokenizer::Parts parts{std::move(vocabulary),
                                    std::move(bpe),
                                    std::move(normalizer),
                                    std::move(pre_tokenizer),
                                    std::move(raw),
                                    std::move(normalized),
                                    {},
                                    {},
                                    std::nullopt};
    if (auto read = read_post_processor(member(tokenizer, "post_processor"), parts); !read)
        return fail("post_processor: " + read.error());
    PB_CHECK(apply_config(config, parts));
    return std::shared_ptr<const Tokenizer>(std::make_shared<ByteLevelTokenizer>(std::move(parts)));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> tokenizer_from_json(const json& tokenizer, const json& config,
                                                             const std::string& where) {
    auto built = build(tokenizer, config);
    if (!built) return fail("the tokenizer of " + where + ": " + built.error());
    return built;
}

Result<std::shared_ptr<const Tokenizer>> parse_tokenizer(std::string_view tokenizer, std::string_view config,
                                                         const std::string& where) {
    PB_TRY(const json value, parse_json(tokenizer, where + "/tokenizer.json"));
    json settings;
    if (!config.empty()) {
        PB_TRY(settings, parse_json(config, where + "/tokenizer_config.json"));
    }
    return tokenizer_from_json(value, settings, where);
}

}  // namespace patchbay::text
