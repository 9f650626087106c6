#include "text/post_processor.hpp"

#include "base/refusals.hpp"
#include "text/json_fields.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;

Result<Surround> read_template(const json& part) {
    const json& single = member(part, "single");
    if (!single.is_array()) return invalid("TemplateProcessing has no list 'single'");
    Surround out;
    bool after = false;
    for (const json& piece : single) {
        if (!member(piece, "Sequence").is_null()) {
            if (after) return unsupported("TemplateProcessing: 'single' with the text twice is not supported");
            after = true;
            continue;
        }
        const std::string name = text_or(member(member(piece, "SpecialToken"), "id"), "");
        const json& ids = member(member(member(part, "special_tokens"), name.c_str()), "ids");
        if (!ids.is_array()) return invalid("TemplateProcessing: no ids for '" + name + "'");
        for (const json& value : ids) {
            PB_TRY(const TokenId id, read_token_id(value, name));
            (after ? out.suffix : out.prefix).push_back(id);
        }
    }
    if (!after) return unsupported("TemplateProcessing: 'single' without the text is not supported");
    return out;
}

// {"cls": ["<s>", 0], "sep": ["</s>", 2]}
Result<Surround> read_cls_and_sep(const json& part, const std::string& type) {
    Surround out;
    for (const char* key : {"cls", "sep"}) {
        const json& pair = member(part, key);
        if (!pair.is_array() || pair.size() != 2) return invalid(type + " has no pair '" + key + "'");
        PB_TRY(const TokenId id, read_token_id(pair[1], text_or(pair[0], key)));
        (*key == 'c' ? out.prefix : out.suffix).push_back(id);
    }
    return out;
}

}  // namespace

Result<TokenId> read_token_id(const json& value, const std::string& token) {
    if (!value.is_number_integer() || value < 0 || value > kMaxTokenId)
        return invalid("token '" + token + "' has id " + value.dump().substr(0, 40) + "; ids go from 0 to " +
                       std::to_string(kMaxTokenId));
    return value.get<TokenId>();
}

Result<Surround> read_post_processor(const json& part) {
    const std::string type = type_of(part);
    if (part.is_null() || type == "ByteLevel") return Surround{}; // ByteLevel's only moves offsets
    if (type == "TemplateProcessing") return read_template(part);
    if (type == "RobertaProcessing" || type == "BertProcessing") return read_cls_and_sep(part, type);
    if (type != "Sequence" || !member(part, "processors").is_array())
        return unsupported("type '" + type +
                           "' is not supported (supported: BertProcessing, ByteLevel, RobertaProcessing, Sequence, "
                           "TemplateProcessing)");
    Surround out;
    for (const json& each : member(part, "processors")) {
        PB_TRY(Surround around, read_post_processor(each));
        if (around.prefix.empty() && around.suffix.empty()) continue;
        // Hugging Face gives the second one the first one's tokens as if they were a pair of texts.
        if (!out.prefix.empty() || !out.suffix.empty())
            return unsupported("a Sequence of which more than one adds tokens is not supported");
        out = std::move(around);
    }
    return out;
}

}  // namespace patchbay::text
