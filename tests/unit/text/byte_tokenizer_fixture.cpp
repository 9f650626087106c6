#include "unit/text/byte_tokenizer_fixture.hpp"

#include "text/byte_alphabet.hpp"
#include "text/tokenizer_json.hpp"

namespace patchbay::text {

using nlohmann::json;

json byte_tokenizer(const Merges& merges) {
    json vocab = json::object(), list = json::array();
    for (int b = 0; b < 256; ++b) vocab[spell_byte(static_cast<unsigned char>(b))] = b;
    int next = 256;
    for (const auto& [left, right] : merges) {
        if (!vocab.contains(left + right)) vocab[left + right] = next++;
        list.push_back(left + " " + right);
    }
    return {{"added_tokens", json::array()},
            {"normalizer", nullptr},
            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
            {"post_processor", {{"type", "ByteLevel"}}},
            {"decoder", {{"type", "ByteLevel"}}},
            {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}};
}

json with_added(json tokenizer, json tokens) {
    tokenizer["added_tokens"] = std::move(tokens);
    return tokenizer;
}

std::shared_ptr<const Tokenizer> built(const json& tokenizer, const json& config) {
    auto made = tokenizer_from_json(tokenizer, config, "test");
    if (!made) throw std::runtime_error(made.error());
    return *made;
}

std::string refusal(const json& tokenizer, const json& config) {
    auto made = tokenizer_from_json(tokenizer, config, "test");
    return made ? "(was accepted)" : made.error();
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::string& text) {
    std::vector<std::string> out;
    for (const TokenId id : tokenizer.encode(text)) out.emplace_back(tokenizer.token_bytes(id));
    return out;
}

}  // namespace patchbay::text
