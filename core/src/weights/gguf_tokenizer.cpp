#include "weights/gguf_tokenizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/refusals.hpp"
#include "text/sentencepiece_tokenizer.hpp"
#include "text/tokenizer_json.hpp"
#include "weights/gguf_end_names.hpp"
#include "weights/gguf_pre_tokenizers.hpp"

namespace patchbay::weights {
namespace {

using nlohmann::json;
using PieceKind = text::SentencePieceModel::PieceKind;

constexpr const char* kPrefix = "tokenizer.ggml.";

// A token's type alone says whether text contains it, as in llama.cpp. Some files have the id of an ordinary token as
// their padding: that of "!", which is number 0.
constexpr auto kNamed = text::NamedTokens::kFoundIfListed;

constexpr size_t kMaxTokens = 1u << 22, kMaxMerges = 1u << 22;

class Embedded {
  public:
    explicit Embedded(const Gguf& file) : file_(file) {}

    Result<std::shared_ptr<const text::Tokenizer>> build() {
        PB_TRY(const std::string model, needed_text("model"));
        if (model != "llama" && model != "gpt2") return fault("model", "llama or gpt2");
        PB_CHECK(read_tokens());
        return model == "llama" ? sentencepiece() : byte_level();
    }

  private:
    const GgufValue* find(const std::string& key) const { return file_.header.find(std::string(kPrefix) + key); }
    Failure fault(const std::string& key, const std::string& expected) const {
        const GgufValue* const value = find(key);
        return invalid(file_.where + ": " + kPrefix + key + " is " + (value ? value->shown() : "not there") +
                       ", expected " + expected);
    }
    Result<std::string> needed_text(const std::string& key) const {
        const GgufValue* const value = find(key);
        const auto text = value ? value->text() : std::nullopt;
        if (!text) return fault(key, "a name");
        return std::string(*text);
    }
    Result<bool> flag(const std::string& key, bool default_value) const {
        const GgufValue* const value = find(key);
        if (!value) return default_value;
        if (!value->truth()) return fault(key, "true or false");
        return *value->truth();
    }
    // The numbers of all tokens; empty: the file has none.
    Result<std::vector<double>> by_token(const std::string& key) const {
        const GgufValue* const value = find(key);
        if (!value) return std::vector<double>{};
        auto numbers = value->count == tokens_.size() ? value->numbers() : std::nullopt;
        if (!numbers)
            return fault(key, "an array of " + std::to_string(tokens_.size()) + " numbers, one for each token");
        return *std::move(numbers);
    }

    Result<> read_tokens() {
        const GgufValue* const value = find("tokens");
        if (!value || value->count.value_or(0) > kMaxTokens || !value->texts() || value->count == 0)
            return fault("tokens", "an array of up to " + std::to_string(kMaxTokens) + " strings");
        tokens_ = *value->texts();
        PB_TRY(const auto kinds, by_token("token_type"));
        for (const double kind : kinds) {
            if (!(kind >= 1 && kind <= 6)) return fault("token_type", "numbers from 1 to 6");
            kinds_.push_back(static_cast<PieceKind>(static_cast<int>(kind)));
        }
        kinds_.resize(tokens_.size(), PieceKind::kNormal);
        for (size_t id = 0; id < tokens_.size(); ++id)
            if (kinds_[id] == PieceKind::kNormal && ends_output(tokens_[id])) kinds_[id] = PieceKind::kControl;
        return {};
    }

    bool is_added(size_t id) const { // found in text before anything else
        const PieceKind kind = kinds_[id];
        return kind == PieceKind::kControl || kind == PieceKind::kUserDefined || kind == PieceKind::kUnknown;
    }

    // The added tokens, as tokenizer.json lists them.
    json added_tokens() const {
        json out = json::array();
        const bool phi3 = is_phi3();
        for (size_t id = 0; id < tokens_.size(); ++id) {
            if (!is_added(id) || tokens_[id].empty()) continue;
            const std::string_view token = tokens_[id];
            const bool strips = phi3 && token != "<s>" && token != "<unk>" && token != "<|endoftext|>";
            out.push_back({{"content", std::string(token)},
                           {"id", id},
                           {"special", kinds_[id] != PieceKind::kUserDefined},
                           {"rstrip", strips}});
        }
        return out;
    }

    // Its tokens take the white space after them. The format has no place for that: the model is known by its name.
    bool is_phi3() const {
        const auto value = [&](const char* key) {
            const GgufValue* const found = file_.header.find(key);
            std::string out(found ? found->text().value_or("") : "");
            for (char& c : out)
                if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
            return out;
        };
        const std::string name = value("general.name");
        return value("tokenizer.ggml.model") == "llama" &&
               (value("general.architecture") == "phi3" || name.find("phi-3") != name.npos ||
                name.find("phi3") != name.npos);
    }

    // The piece that stands for the unknown. Some files give it another type, and its type to others.
    size_t unknown_piece() const {
        const GgufValue* const value = find("unknown_token_id");
        const auto named = value ? value->integer() : std::nullopt;
        if (named && *named >= 0 && static_cast<size_t>(*named) < tokens_.size() &&
            is_added(static_cast<size_t>(*named)))
            return static_cast<size_t>(*named);
        const auto typed = std::find(kinds_.begin(), kinds_.end(), PieceKind::kUnknown);
        if (typed != kinds_.end()) return static_cast<size_t>(typed - kinds_.begin());
        return static_cast<size_t>(std::find(tokens_.begin(), tokens_.end(), "<unk>") - tokens_.begin());
    }

    // What tokenizer_config.json would say. begins: where the file does not.
    Result<json> config(bool begins) const {
        json out = json::object();
        constexpr std::pair<const char*, const char*> kNames[] = {
            {"bos", "bos"}, {"eos", "eos"}, {"unknown", "unk"}, {"padding", "pad"}};  // the file's, the configuration's
        for (const auto& [ours, name] : kNames) {
            const std::string key = std::string(ours) + "_token_id";
            const GgufValue* const value = find(key);
            if (!value) continue;
            const auto id = value->integer();
            if (!id || *id < 0 || static_cast<size_t>(*id) >= tokens_.size())
                return fault(key, "a token id below " + std::to_string(tokens_.size()));
            out[std::string(name) + "_token"] = std::string(tokens_[static_cast<size_t>(*id)]);
        }
        PB_TRY(const bool bos, flag("add_bos_token", begins));
        PB_TRY(const bool eos, flag("add_eos_token", false));
        if (bos && !out.contains("bos_token")) return fault("bos_token_id", "a token id, which texts begin with");
        if (eos && !out.contains("eos_token")) return fault("eos_token_id", "a token id, which texts end with");
        out["add_bos_token"] = bos;
        out["add_eos_token"] = eos;
        return out;
    }

    Result<std::shared_ptr<const text::Tokenizer>> sentencepiece() {
        text::SentencePieceModel model;
        model.kind = text::SentencePieceModel::Kind::kBpe;
        PB_TRY(const auto scores, by_token("scores"));
        if (scores.empty()) return fault("scores", "an array of numbers, one for each token");
        const size_t unknown = unknown_piece();
        for (size_t id = 0; id < tokens_.size(); ++id) {
            if (!(std::abs(scores[id]) <= std::numeric_limits<float>::max())) return fault("scores", "finite numbers");
            PieceKind kind = kinds_[id];
            if (id == unknown)
                kind = PieceKind::kUnknown;
            else if (kind == PieceKind::kUserDefined)
                kind = PieceKind::kNormal; // found as an added token; between those, merging may still make it
            else if (kind == PieceKind::kUnused || kind == PieceKind::kUnknown)
                kind = PieceKind::kControl; // what pads a vocabulary to a round size is in no text
            model.pieces.push_back({std::string(tokens_[id]), static_cast<float>(scores[id]), kind});
        }
        model.byte_fallback = std::find(kinds_.begin(), kinds_.end(), PieceKind::kByte) != kinds_.end();
        PB_TRY(model.add_dummy_prefix, flag("add_space_prefix", true));
        PB_TRY(model.remove_extra_whitespaces, flag("remove_extra_whitespaces", false));
        model.eos_id = -1;  // named by the configuration, or there is none
        PB_TRY(json settings, config(true));
        for (json& token : added_tokens()) {
            const std::string id = token["id"].dump();
            settings["added_tokens_decoder"][id] = std::move(token);
        }
        return text::sentencepiece_tokenizer(model, std::move(settings), file_.where, kNamed);
    }

    Result<std::shared_ptr<const text::Tokenizer>> byte_level() {
        PB_TRY(const std::string name, needed_text("pre"));
        auto before = gguf_pre_tokenizer(name);
        if (!before)
            return fail(before.code(), file_.where + ": " + kPrefix + "pre '" + name + "' " + before.error() +
                        " (or name a folder with tokenizer.json as the tokenizer)");
        const GgufValue* const merges = find("merges");
        const auto listed = merges && merges->count.value_or(0) <= kMaxMerges ? merges->texts() : std::nullopt;
        if (!listed) return fault("merges", "an array of up to " + std::to_string(kMaxMerges) + " strings");
        json vocabulary = json::object(), pairs = json::array();
        for (const std::string_view pair : *listed) pairs.push_back(std::string(pair));
        for (size_t id = 0; id < tokens_.size(); ++id) {
            if (is_added(id)) continue;
            if (!vocabulary.emplace(std::string(tokens_[id]), id).second)
                return invalid(file_.where + ": " + kPrefix + "tokens has number " + std::to_string(id) + " twice");
        }
        json model = {{"type", "BPE"},
                      {"vocab", std::move(vocabulary)},
                      {"merges", std::move(pairs)},
                      {"ignore_merges", before->whole_words}};
        const json tokenizer = {{"normalizer", std::move(before->normalizer)},
                                {"pre_tokenizer", std::move(before->pre_tokenizer)},
                                {"model", std::move(model)},
                                {"added_tokens", added_tokens()}};
        PB_TRY(const json settings, config(before->begins));
        return text::tokenizer_from_json(tokenizer, settings, file_.where, kNamed);
    }

    const Gguf& file_;
    std::vector<std::string_view> tokens_;
    std::vector<PieceKind> kinds_;  // by token
};

}  // namespace

Result<std::shared_ptr<const text::Tokenizer>> gguf_tokenizer(const Gguf& file) { return Embedded(file).build(); }

Result<std::shared_ptr<const text::Tokenizer>> load_gguf_tokenizer(const std::filesystem::path& path) {
    PB_TRY(const GgufFile file, open_gguf(path));
    return gguf_tokenizer(file.gguf);
}

}  // namespace patchbay::weights
