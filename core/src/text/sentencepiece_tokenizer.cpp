#include "text/sentencepiece_tokenizer.hpp"

#include <algorithm>
#include <cfloat>
#include <map>
#include <nlohmann/json.hpp>

#include "base/refusals.hpp"
#include "text/character_bpe.hpp"
#include "text/characters.hpp"
#include "text/json_fields.hpp"
#include "text/pipeline_tokenizer.hpp"
#include "text/tokenizer_config.hpp"
#include "text/unigram.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;
using Model = std::unique_ptr<const SubwordModel>;
using Kind = SentencePieceModel::PieceKind;
using Piece = SentencePieceModel::Piece;

Result<TokenId> find_unknown(const SentencePieceModel& model) {
    const auto unknown = [](const Piece& piece) { return piece.kind == Kind::kUnknown; };
    const auto at = std::find_if(model.pieces.begin(), model.pieces.end(), unknown);
    if (at == model.pieces.end()) return invalid("no piece stands for the unknown");
    return static_cast<TokenId>(at - model.pieces.begin());
}

Result<std::optional<ByteTokens>> find_bytes(const SentencePieceModel& model, const Vocabulary& vocabulary) {
    if (!model.byte_fallback) return std::optional<ByteTokens>();
    ByteTokens out = byte_tokens(vocabulary);
    for (size_t b = 0; b < out.size(); ++b)
        if (out[b] == kNoToken || model.pieces[static_cast<size_t>(out[b])].kind != Kind::kByte)
            return invalid("byte_fallback is set, but no piece stands for the byte " + std::to_string(b));
    return std::optional(out);
}

PieceTrie user_defined(const SentencePieceModel& model) {
    std::vector<std::pair<std::string, int32_t>> out;
    for (size_t id = 0; id < model.pieces.size(); ++id)
        if (model.pieces[id].kind == Kind::kUserDefined)
            out.emplace_back(model.pieces[id].text, static_cast<int32_t>(id));
    return PieceTrie(std::move(out));
}

Unigram::Parts unigram_parts(const SentencePieceModel& model) {
    constexpr float kUnknownPenalty = 10;
    Unigram::Parts out;
    out.sums = Unigram::Sums::kFloat;
    float lowest = FLT_MAX, highest = FLT_MIN; // the library begins with this smallest positive number, too
    for (const Piece& piece : model.pieces)
        if (piece.kind == Kind::kNormal) {
            lowest = std::min(lowest, piece.score);
            highest = std::max(highest, piece.score);
        }
    out.unk_score = lowest - kUnknownPenalty;
    for (size_t id = 0; id < model.pieces.size(); ++id) {
        const Piece& piece = model.pieces[id];
        // A user-defined symbol shall win against every way to spell it.
        const double score = piece.kind == Kind::kUserDefined ? static_cast<float>(piece.text.size()) * highest - 0.1
                                                              : static_cast<double>(piece.score);
        if (piece.kind == Kind::kNormal || piece.kind == Kind::kUserDefined)
            out.pieces.push_back({piece.text, static_cast<TokenId>(id), score});
    }
    return out;
}

// SentencePiece merges any two neighbours whose text together is a piece, the one of the highest score first. That is a
// merge table: each way to cut a piece into two symbols is a pair, and its rank comes from the piece's score.
class BpePairs {
  public:
    explicit BpePairs(const SentencePieceModel& model) {
        for (size_t id = 0; id < model.pieces.size(); ++id)
            if (const Piece& piece = model.pieces[id]; counts(piece))
                symbols_.emplace(piece.text, static_cast<TokenId>(id));
        add_characters(model);
        rank(model);
    }

    Result<> fill(const SentencePieceModel& model, CharacterBpe::Parts& out) {
        struct Pair {
            TokenId left, right;
            MergeTable::Merge merge;
        };
        std::vector<Pair> pairs;
        for (size_t id = 0; id < model.pieces.size(); ++id) {
            const Piece& piece = model.pieces[id];
            if (piece.kind == Kind::kUnused)
                return unsupported("piece " + std::to_string(id) +
                                   " is of the kind 'unused', which is not supported with BPE");
            if (!counts(piece)) continue;
            out.tokens.emplace_back(piece.text, static_cast<TokenId>(id));
            const std::string_view text = piece.text;
            for (size_t cut = 0; next_character(text, cut), cut < text.size();) {
                const auto left = symbols_.find(text.substr(0, cut)), right = symbols_.find(text.substr(cut));
                if (left != symbols_.end() && right != symbols_.end())
                    pairs.push_back({left->second, right->second, {ranks_.at(piece.score), static_cast<TokenId>(id)}});
            }
        }
        out.merges = MergeTable(pairs.size());
        for (const Pair& pair : pairs) out.merges.set(pair.left, pair.right, pair.merge);
        out.characters = std::move(characters_);
        out.inner = std::move(inner_);
        return {};
    }

  private:
    static bool counts(const Piece& piece) { return piece.kind == Kind::kNormal || piece.kind == Kind::kUserDefined; }

    void add_characters(const SentencePieceModel& model) {
        for (const Piece& piece : model.pieces)
            for (size_t at = 0; counts(piece) && at < piece.text.size();) {
                const size_t begin = at;
                const char32_t c = next_character(piece.text, at);
                const std::string text = piece.text.substr(begin, at - begin);
                const auto inner = CharacterBpe::kInner + static_cast<TokenId>(inner_.size());
                const auto [symbol, added] = symbols_.emplace(text, inner);
                if (added) inner_.push_back(c);
                characters_.emplace(c, symbol->second);
            }
    }

    void rank(const SentencePieceModel& model) {
        for (const Piece& piece : model.pieces)
            if (counts(piece)) ranks_.emplace(piece.score, 0);
        uint32_t next = 0;
        for (auto& [score, rank] : ranks_) rank = next++;
    }

    std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> symbols_; // pieces and single characters
    std::unordered_map<char32_t, TokenId> characters_;
    std::vector<char32_t> inner_;
    std::map<float, uint32_t, std::greater<>> ranks_; // equal scores share one
};

Result<Model> build_model(const SentencePieceModel& model, const Vocabulary& vocabulary) {
    PB_TRY(const TokenId unk, find_unknown(model));
    PB_TRY(const auto bytes, find_bytes(model, vocabulary));
    if (model.kind == SentencePieceModel::Kind::kUnigram) {
        Unigram::Parts parts = unigram_parts(model);
        parts.unk = unk;
        parts.bytes = bytes;
        return Model(std::make_unique<Unigram>(std::move(parts)));
    }
    CharacterBpe::Parts parts;
    PB_CHECK(BpePairs(model).fill(model, parts));
    parts.unk = unk;
    parts.bytes = bytes;
    parts.fuse_unk = true;
    parts.unknown = CharacterBpe::Unknown::kAfterMerging;
    parts.user_defined = user_defined(model);
    return Model(std::make_unique<CharacterBpe>(std::move(parts)));
}

Result<Normalizer> build_normalizer(const SentencePieceModel& model, const json& config) {
    SentencePieceNormalizer out;
    if (!model.charsmap.empty()) {
        PB_TRY(out.charsmap, Charsmap::parse(model.charsmap));
    }
    out.user_defined = user_defined(model);
    // Between added tokens: each stretch of text is one for SentencePiece. Models with "legacy": false want it
    // otherwise.
    const bool every = !(member(config, "legacy").is_boolean() && !is_true(member(config, "legacy")));
    out.dummy_prefix = !model.add_dummy_prefix ? PrefixScheme::kNever
                       : every                 ? PrefixScheme::kAlways
                                               : PrefixScheme::kFirst;
    out.remove_extra_spaces = model.remove_extra_whitespaces;
    out.escape_spaces = model.escape_whitespaces;
    return Normalizer(std::move(out));
}

// Those of tokenizer_config.json, listed or named.
Result<std::vector<AddedToken>> added_tokens(const json& config, const Vocabulary& vocabulary, NamedTokens named) {
    PB_TRY(const json listed, listed_added_tokens(config));
    PB_TRY(auto out, read_added_tokens(listed));
    add_named_tokens(config, vocabulary, named, out);
    return out;
}

// transformers' classes for these models begin a text with BOS by default.
void default_bos(json& config) {
    const std::string name = text_or(member(config, "tokenizer_class"), "");
    const bool begins = name.starts_with("Llama") || name.starts_with("CodeLlama") || name.starts_with("Gemma");
    if (!begins || config.contains("add_bos_token")) return;
    config["add_bos_token"] = true;
    if (!config.contains("bos_token")) config["bos_token"] = "<s>";
}

Result<std::shared_ptr<const Tokenizer>> build(const SentencePieceModel& model, json config, NamedTokens named) {
    constexpr size_t kMaxBytes = 16u << 20; // of all pieces: each is cut everywhere
    size_t bytes = 0;
    Vocabulary vocabulary;
    for (size_t id = 0; id < model.pieces.size(); ++id) {
        const Piece& piece = model.pieces[id];
        PB_CHECK(vocabulary.add(piece.text, static_cast<TokenId>(id)));
        if (piece.kind == Kind::kControl || piece.kind == Kind::kUnknown)
            PB_CHECK(vocabulary.add_added(piece.text, static_cast<TokenId>(id), TokenKind::kSpecial));
        bytes += piece.text.size();
    }
    if (bytes > kMaxBytes)
        return invalid("pieces of " + std::to_string(bytes) + " bytes are more than " + std::to_string(kMaxBytes));
    PB_TRY(Model subwords, build_model(model, vocabulary));
    PB_TRY(Normalizer normalizer, build_normalizer(model, config));
    PB_TRY(PreTokenizer pre_tokenizer, PreTokenizer::from_json(nullptr));
    const auto leading = model.remove_extra_whitespaces ? Decoder::LeadingSpaces::kAllDropped
                         : model.add_dummy_prefix       ? Decoder::LeadingSpaces::kOneDropped
                                                        : Decoder::LeadingSpaces::kKept;
    PB_TRY(auto added, added_tokens(config, vocabulary, named));
    PipelineTokenizer::Parts parts{
        std::move(vocabulary),
        std::move(subwords),
        std::move(normalizer),
        std::move(pre_tokenizer),
        Decoder::sentencepiece(leading, model.byte_fallback ? Decoder::BytePieces::kAll : Decoder::BytePieces::kNone),
        {},
        {}};
    PB_CHECK(parts.add(std::move(added)));
    default_bos(config);
    PB_CHECK(apply_config(config, parts));
    const bool ends = model.eos_id >= 0 && static_cast<size_t>(model.eos_id) < model.pieces.size() &&
                      model.pieces[static_cast<size_t>(model.eos_id)].kind == Kind::kControl;
    if (!parts.eos && ends) parts.eos = model.eos_id;
    return PipelineTokenizer::create(std::move(parts));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> sentencepiece_tokenizer(const SentencePieceModel& model, json config,
                                                                 const std::string& where, NamedTokens named) {
    auto built = build(model, std::move(config), named);
    if (!built) return prefixed("the tokenizer of " + where, built.failure());
    return built;
}

}  // namespace patchbay::text
