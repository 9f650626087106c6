#include "text/tiktoken.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "text/bpe.hpp"
#include "text/byte_alphabet.hpp"
#include "text/json_fields.hpp"
#include "text/known_patterns.hpp"
#include "text/pipeline_tokenizer.hpp"
#include "text/tokenizer_config.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::string> from_base64(std::string_view text) {
    if (text.empty() || text.size() % 4 != 0) return std::nullopt;
    const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
    text.remove_suffix(padding);
    std::string out;
    uint32_t bits = 0, count = 0;
    for (const char c : text) {
        const size_t value = kBase64.find(c);
        if (value == kBase64.npos) return std::nullopt;
        bits = bits << 6 | static_cast<uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out += static_cast<char>(bits >> count & 0xFF);
    }
    return out;
}

std::string spelled(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) out += spell_byte(static_cast<unsigned char>(c));
    return out;
}

// What the file does not say of a model's tokenizer.
struct Scheme {
    const char* pattern;
    std::vector<AddedToken> special;
    std::string bos, eos; // empty: none
    bool begins = false;  // with bos
};

class Specials { // from the first id after the ranks on
  public:
    explicit Specials(TokenId next) : next_(next) {}
    void add(const std::string& content) { out_.push_back(token(next_++, content)); }
    void add_reserved(const std::string& prefix, int from, int to) { // both numbers have one
        for (int i = from; i <= to; ++i) add("<|" + prefix + "reserved_special_token_" + std::to_string(i) + "|>");
    }
    size_t size() const { return out_.size(); }
    std::vector<AddedToken> take() { return std::move(out_); }
    static AddedToken token(TokenId id, const std::string& content) {
        AddedToken out;
        out.id = id;
        out.content = content;
        out.special = true;
        return out;
    }

  private:
    TokenId next_;
    std::vector<AddedToken> out_;
};

// Source: Meta's llama-models, models/llama3/tokenizer.py.
Scheme llama3(TokenId base) {
    Specials special(base);
    for (const char* name : {"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                             "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|step_id|>",
                             "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>",
                             "<|image|>"})
        special.add(name);
    special.add_reserved("", 2, 245);
    return {kLlama3Pattern, special.take(), "<|begin_of_text|>", "<|end_of_text|>", true};
}

// Source: Meta's llama-models, models/llama4/tokenizer.py.
Scheme llama4(TokenId base) {
    constexpr int kSpecials = 2048;
    Specials special(base);
    for (const char* name : {"<|begin_of_text|>", "<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>",
                             "<|fim_suffix|>", "<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"})
        special.add(name);
    special.add_reserved("text_post_train_", 0, 5);
    for (const char* name : {"<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"}) special.add(name);
    special.add_reserved("text_post_train_", 8, 68);
    for (const char* name : {"<|image_start|>", "<|image_end|>"}) special.add(name);
    special.add_reserved("vision_", 0, 1);
    for (const char* name : {"<|tile_x_separator|>", "<|tile_y_separator|>"}) special.add(name);
    special.add_reserved("vision_", 2, 5);
    special.add("<|image|>");
    special.add_reserved("vision_", 6, 6);
    special.add("<|patch|>");
    special.add_reserved("vision_", 7, 1047);
    special.add_reserved("reasoning_", 0, 7);
    for (const char* name : {"<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"}) special.add(name);
    special.add_reserved("", 0, kSpecials - static_cast<int>(special.size()) - 1);
    return {kO200kPattern, special.take(), "<|begin_of_text|>", "<|end_of_text|>", true};
}

// Source: tiktoken's encodings.
std::optional<Scheme> openai(const std::string& file) {
    const auto token = Specials::token;
    const AddedToken end = token(50256, "<|endoftext|>");
    if (file == "r50k_base.tiktoken" || file == "p50k_base.tiktoken")
        return Scheme{kGpt2Pattern, {end}, "", end.content};
    if (file == "cl100k_base.tiktoken")
        return Scheme{kCl100kPattern,
                      {token(100257, "<|endoftext|>"), token(100258, "<|fim_prefix|>"), token(100259, "<|fim_middle|>"),
                       token(100260, "<|fim_suffix|>"), token(100276, "<|endofprompt|>")},
                      "",
                      "<|endoftext|>"};
    if (file == "o200k_base.tiktoken")
        return Scheme{kO200kPattern,
                      {token(199999, "<|endoftext|>"), token(200018, "<|endofprompt|>")},
                      "",
                      "<|endoftext|>"};
    return std::nullopt;
}

// Moonshot's models say in tokenizer_config.json what their special tokens are; the other ids are reserved.
Result<Scheme> kimi(TokenId base, const json& config) {
    constexpr TokenId kReserved = 256;
    PB_TRY(const json listed, listed_added_tokens(config));
    PB_TRY(std::vector<AddedToken> special, read_added_tokens(listed));
    for (TokenId id = base; id < base + kReserved; ++id)
        if (std::none_of(special.begin(), special.end(), [&](const AddedToken& t) { return t.id == id; }))
            special.push_back(Specials::token(id, "<|reserved_token_" + std::to_string(id) + "|>"));
    return Scheme{kKimiPattern, std::move(special), "", ""};
}

Result<Scheme> scheme_of(size_t base, const json& config, const std::string& name) {
    constexpr size_t kLlama3 = 128000, kLlama4 = 200000;
    const std::string type = text_or(member(config, "tokenizer_class"), "");
    if (auto known = openai(name)) return *std::move(known);
    if (type == "TikTokenTokenizer") return kimi(static_cast<TokenId>(base), config);
    if (type.empty() || type == "PreTrainedTokenizerFast") {
        if (base == kLlama3) return llama3(static_cast<TokenId>(base));
        if (base == kLlama4) return llama4(static_cast<TokenId>(base));
    }
    return unsupported("a rank file of " + std::to_string(base) + " tokens" +
                       (type.empty() ? "" : " and the class '" + type + "'") +
                       " does not say how text is split (supported: Llama 3, of 128000 tokens; Llama 4, of 200000; "
                       "TikTokenTokenizer, of Kimi; r50k_base, p50k_base, cl100k_base and o200k_base, named "
                       ".tiktoken): add the tokenizer.json of the model's Hugging Face folder");
}

Result<std::shared_ptr<const Tokenizer>> build(std::string_view file, const json& config, const std::string& name) {
    PB_TRY(const auto tokens, parse_tiktoken(file));
    const auto count = std::count_if(tokens.begin(), tokens.end(), [](const std::string& t) { return !t.empty(); });
    PB_TRY(Scheme scheme, scheme_of(static_cast<size_t>(count), config, name));
    Vocabulary vocabulary;
    for (size_t id = 0; id < tokens.size(); ++id)
        if (!tokens[id].empty()) PB_CHECK(vocabulary.add(spelled(tokens[id]), static_cast<TokenId>(id)));
    PB_TRY(Bpe bpe, Bpe::create_ranked(vocabulary));
    const json split = {{"type", "Split"}, {"pattern", {{"Regex", scheme.pattern}}}, {"behavior", "Isolated"}};
    const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    PB_TRY(PreTokenizer pre, PreTokenizer::from_json({{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}));
    PB_TRY(Decoder decoder, Decoder::from_json(nullptr, true));
    PipelineTokenizer::Parts parts{std::move(vocabulary), std::make_unique<Bpe>(std::move(bpe)), Normalizer(),
                                   std::move(pre), std::move(decoder), {}, {}};
    PB_CHECK(parts.add(std::move(scheme.special)));
    json settings = config;
    if (!scheme.bos.empty() && !settings.contains("bos_token")) settings["bos_token"] = scheme.bos;
    if (!scheme.eos.empty() && !settings.contains("eos_token")) settings["eos_token"] = scheme.eos;
    if (scheme.begins && !settings.contains("add_bos_token")) settings["add_bos_token"] = true;
    PB_CHECK(apply_config(settings, parts));
    return PipelineTokenizer::create(std::move(parts));
}

}  // namespace

bool is_tiktoken(std::string_view file) {
    std::string_view line = file.substr(0, file.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t space = line.find(' ');
    if (space == line.npos || line.size() > kMaxTokenBytes * 2) return false;
    const std::string_view rank = line.substr(space + 1);
    return from_base64(line.substr(0, space)) && !rank.empty() && rank.find_first_not_of("0123456789") == rank.npos;
}

Result<std::vector<std::string>> parse_tiktoken(std::string_view file) {
    std::vector<std::string> out;
    for (size_t number = 1; !file.empty(); ++number) {
        const size_t end = std::min(file.find('\n'), file.size());
        std::string_view line = file.substr(0, end);
        file.remove_prefix(std::min(end + 1, file.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        const auto bad = [&](const std::string& what) {
            return invalid("line " + std::to_string(number) + ": " + what);
        };
        const size_t space = std::min(line.find(' '), line.size());
        const auto token = from_base64(line.substr(0, space));
        const std::string_view rank = line.substr(std::min(space + 1, line.size()));
        const TokenId id = parse_number<TokenId>(rank).value_or(-1);
        if (!token || token->empty() || id < 0)
            return bad("got '" + std::string(line.substr(0, 60)) + "', expected a token in base64 and its rank");
        if (id > kMaxTokenId) return bad("rank " + std::to_string(id) + " is above " + std::to_string(kMaxTokenId));
        if (token->size() * 2 > kMaxTokenBytes)
            return bad("a token of " + std::to_string(token->size()) + " bytes is longer than " +
                       std::to_string(kMaxTokenBytes / 2));
        if (static_cast<size_t>(id) >= out.size()) out.resize(static_cast<size_t>(id) + 1);
        if (!out[static_cast<size_t>(id)].empty()) return bad("rank " + std::to_string(id) + " is there twice");
        out[static_cast<size_t>(id)] = *token;
    }
    return out;
}

Result<std::shared_ptr<const Tokenizer>> tiktoken_tokenizer(std::string_view file, const json& config,
                                                            const std::string& name, const std::string& where) {
    auto built = build(file, config, name);
    if (!built) return prefixed("the tokenizer of " + where, built.failure());
    return built;
}

}  // namespace patchbay::text
