#include "text/model_json.hpp"

#include <algorithm>
#include <cmath>

#include "base/refusals.hpp"
#include "text/affix_bpe.hpp"
#include "text/bpe.hpp"
#include "text/byte_tokens.hpp"
#include "text/character_bpe.hpp"
#include "text/characters.hpp"
#include "text/json_fields.hpp"
#include "text/post_processor.hpp"
#include "text/unigram.hpp"
#include "text/word_models.hpp"

namespace patchbay::text {
namespace {

using nlohmann::json;
using Model = std::unique_ptr<const SubwordModel>;

constexpr size_t kMaxPieceBytes = 16u << 20; // of all pieces: each byte takes a node of a search tree

// "a b" or ["a", "b"].
Result<std::vector<MergePair>> read_merges(const json& list) {
    constexpr size_t kMaxMerges = 1u << 22;
    std::vector<MergePair> out;
    if (list.size() > kMaxMerges)
        return invalid(std::to_string(list.size()) + " merges are more than " + std::to_string(kMaxMerges));
    out.reserve(list.size());
    for (const json& merge : list) {
        const auto bad = [&] {
            return invalid("merge " + std::to_string(out.size()) + " is " + shown(merge) + ", not two tokens");
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

Result<> read_vocabulary(const json& model, Vocabulary& vocabulary) {
    if (!member(model, "vocab").is_object()) return invalid("the model has no object 'vocab'");
    for (const auto& [spelled, value] : model["vocab"].items()) {
        PB_TRY(const TokenId id, read_token_id(value, spelled));
        PB_CHECK(vocabulary.add(spelled, id));
    }
    return {};
}

// unk_token; kNoToken: there is none.
Result<TokenId> read_unknown(const json& model, const Vocabulary& vocabulary, const char* default_name = nullptr) {
    const json& given = member(model, "unk_token");
    const json unk = given.is_null() && default_name ? json(default_name) : given;
    if (unk.is_null()) return kNoToken;
    const auto id = vocabulary.find(text_or(unk, ""));
    if (!id) return invalid("model: unk_token " + shown(unk) + " is not in the vocabulary");
    return *id;
}

Result<Model> read_character_bpe(const json& model, const std::vector<MergePair>& merges,
                                 const Vocabulary& vocabulary) {
    CharacterBpe::Parts parts;
    PB_TRY(parts.merges, read_merge_table(vocabulary, merges));
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id) {
        const std::string_view spelled = vocabulary.spelled(id);
        if (spelled.empty()) continue;
        size_t at = 0;
        if (const char32_t c = next_character(spelled, at); at == spelled.size()) parts.characters.emplace(c, id);
        parts.tokens.emplace_back(spelled, id);
    }
    PB_TRY(parts.unk, read_unknown(model, vocabulary));
    PB_TRY(const bool byte_fallback, flag(model, "byte_fallback", false));
    if (byte_fallback) parts.bytes = byte_tokens(vocabulary);
    PB_TRY(parts.fuse_unk, flag(model, "fuse_unk", false));
    PB_TRY(parts.ignore_merges, flag(model, "ignore_merges", false));
    return Model(std::make_unique<CharacterBpe>(std::move(parts)));
}

// prefix: continuing_subword_prefix; suffix: end_of_word_suffix.
Result<Model> read_affix_bpe(const json& model, const std::vector<MergePair>& merges, const Vocabulary& vocabulary,
                             const std::string& prefix, const std::string& suffix) {
    AffixBpe::Parts parts;
    for (const std::string& affix : {prefix, suffix})
        if (affix.size() > kMaxTokenBytes) return invalid("model: a prefix or suffix of subwords is too long");
    parts.continuing_prefix = prefix;
    parts.end_suffix = suffix;
    PB_TRY(parts.merges, read_merge_table(vocabulary, merges, prefix));
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id)
        if (const std::string_view spelled = vocabulary.spelled(id); !spelled.empty())
            parts.tokens.emplace(spelled, id);
    PB_TRY(parts.unknown, read_unknown(model, vocabulary));
    PB_TRY(const bool byte_fallback, flag(model, "byte_fallback", false));
    if (byte_fallback) parts.bytes = byte_tokens(vocabulary);
    PB_TRY(parts.fuse_unknown, flag(model, "fuse_unk", false));
    PB_TRY(parts.ignore_merges, flag(model, "ignore_merges", false));
    return Model(std::make_unique<AffixBpe>(std::move(parts)));
}

Result<Model> read_bpe(const json& model, Alphabet alphabet, Vocabulary& vocabulary) {
    if (!member(model, "merges").is_array()) return invalid("the model has no list 'merges'");
    if (const json& dropout = member(model, "dropout"); dropout.is_number() && dropout != 0)
        return unsupported("model: dropout " + dropout.dump() + " is not supported, encoding would be random");
    PB_CHECK(read_vocabulary(model, vocabulary));
    PB_TRY(const auto merges, read_merges(model["merges"]));
    const std::string prefix = text_or(member(model, "continuing_subword_prefix"), "");
    const std::string suffix = text_or(member(model, "end_of_word_suffix"), "");
    if (!prefix.empty() || !suffix.empty()) {
        if (alphabet == Alphabet::kBytes)
            return unsupported(std::string("model: ") +
                               (prefix.empty() ? "end_of_word_suffix '" + suffix
                                               : "continuing_subword_prefix '" + prefix) +
                               "' with a ByteLevel pre_tokenizer is not supported");
        return read_affix_bpe(model, merges, vocabulary, prefix, suffix);
    }
    if (alphabet == Alphabet::kCharacters) return read_character_bpe(model, merges, vocabulary);
    PB_TRY(const bool ignore_merges, flag(model, "ignore_merges", false));
    PB_TRY(Bpe bpe, Bpe::create(vocabulary, merges, ignore_merges ? WholeWords::kLookedUp : WholeWords::kMerged));
    if (bpe.lacks_bytes()) {
        Bpe::Unknown unknown;
        PB_TRY(unknown.id, read_unknown(model, vocabulary));
        PB_TRY(unknown.fused, flag(model, "fuse_unk", false));
        bpe.set_unknown(unknown);
    }
    return Model(std::make_unique<Bpe>(std::move(bpe)));
}

// "vocab": [["<unk>", 0.0], ["▁the", -3.2], …]; a token's id is its place.
Result<Model> read_unigram(const json& model, Alphabet alphabet, Vocabulary& vocabulary) {
    constexpr double kUnknownPenalty = 10; // below the lowest score, as in Hugging Face tokenizers
    if (alphabet == Alphabet::kBytes)
        return unsupported("model type 'Unigram' with a ByteLevel pre_tokenizer is not supported");
    const json& list = member(model, "vocab");
    if (!list.is_array() || list.empty()) return invalid("the model has no list 'vocab'");
    Unigram::Parts parts;
    double lowest = 0;
    size_t bytes = 0;
    for (const json& entry : list) {
        const std::string where = "token " + std::to_string(vocabulary.size());
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
            return invalid(where + " is " + shown(entry) + ", not a string and its score");
        const auto score = entry[1].get<double>();
        if (!(std::abs(score) < 1e9)) return invalid(where + " has the score " + shown(entry[1]));
        const auto id = static_cast<TokenId>(vocabulary.size());
        PB_CHECK(vocabulary.add(entry[0].get<std::string>(), id));
        lowest = id == 0 ? score : std::min(lowest, score);
        if ((bytes += vocabulary.spelled(id).size()) > kMaxPieceBytes)
            return invalid("pieces of more than " + std::to_string(kMaxPieceBytes) + " bytes together");
        if (!vocabulary.spelled(id).empty()) parts.pieces.push_back({std::string(vocabulary.spelled(id)), id, score});
    }
    const json& unk = member(model, "unk_id");
    if (!unk.is_number_integer() || unk < 0 || unk >= vocabulary.size())
        return invalid("model: unk_id " + shown(unk) + " is not a token of the vocabulary");
    parts.unk = unk.get<TokenId>();
    parts.unk_score = lowest - kUnknownPenalty;
    PB_TRY(const bool byte_fallback, flag(model, "byte_fallback", false));
    if (byte_fallback) parts.bytes = byte_tokens(vocabulary);
    return Model(std::make_unique<Unigram>(std::move(parts)));
}

Result<Model> read_wordpiece(const json& model, Vocabulary& vocabulary) {
    PB_CHECK(read_vocabulary(model, vocabulary));
    WordPiece::Parts parts;
    size_t bytes = 0;
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id) {
        parts.tokens.emplace_back(vocabulary.spelled(id), id);
        if ((bytes += vocabulary.spelled(id).size()) > kMaxPieceBytes)
            return invalid("pieces of more than " + std::to_string(kMaxPieceBytes) + " bytes together");
    }
    parts.continuing_prefix = text_or(member(model, "continuing_subword_prefix"), "##");
    PB_TRY(parts.unknown, read_unknown(model, vocabulary, "[UNK]"));
    const json& longest = member(model, "max_input_chars_per_word");
    if (!longest.is_null()) {
        if (!longest.is_number_unsigned())
            return invalid("model: max_input_chars_per_word " + shown(longest) + " is not a count");
        parts.max_characters = longest.get<size_t>();
    }
    return Model(std::make_unique<WordPiece>(std::move(parts)));
}

Result<Model> read_wordlevel(const json& model, Vocabulary& vocabulary) {
    PB_CHECK(read_vocabulary(model, vocabulary));
    PB_TRY(const TokenId unknown, read_unknown(model, vocabulary, "<unk>"));
    WordTable words;
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id) words.add(vocabulary.spelled(id), id);
    return Model(std::make_unique<WordLevel>(std::move(words), unknown));
}

}  // namespace

Result<Model> read_model(const json& model, Alphabet alphabet, Vocabulary& vocabulary) {
    if (!model.is_object()) return invalid("there is no 'model'");
    // Old files have no type.
    const std::string type = text_or(member(model, "type"), member(model, "vocab").is_array() ? "Unigram" : "BPE");
    if (type == "BPE") return read_bpe(model, alphabet, vocabulary);
    if (type == "Unigram") return read_unigram(model, alphabet, vocabulary);
    if (type != "WordPiece" && type != "WordLevel")
        return unsupported("model type '" + type +
                           "' is not supported (supported: BPE, Unigram, WordLevel, WordPiece)");
    if (alphabet == Alphabet::kBytes)
        return unsupported("model type '" + type + "' with a ByteLevel pre_tokenizer is not supported");
    return type == "WordPiece" ? read_wordpiece(model, vocabulary) : read_wordlevel(model, vocabulary);
}

}  // namespace patchbay::text
