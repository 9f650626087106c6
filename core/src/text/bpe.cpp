#include "text/bpe.hpp"

#include <algorithm>

#include "base/refusals.hpp"
#include "text/byte_alphabet.hpp"
#include "text/characters.hpp"

namespace patchbay::text {

Result<MergeTable> read_merge_table(const Vocabulary& vocabulary, const std::vector<MergePair>& merges,
                                    std::string_view continuing_prefix) {
    MergeTable out(merges.size());
    for (size_t rank = 0; rank < merges.size(); ++rank) {
        const auto& [left, right] = merges[rank];
        if (!right.starts_with(continuing_prefix))
            return invalid("merge " + std::to_string(rank) + ": '" + right + "' does not begin with '" +
                           std::string(continuing_prefix) + "'");
        TokenId ids[3];
        const std::string spelled[3] = {left, right, left + right.substr(continuing_prefix.size())};
        for (int i = 0; i < 3; ++i) {
            const auto id = vocabulary.find(spelled[i]);
            if (!id)
                return invalid("merge " + std::to_string(rank) + " ('" + left + "' + '" + right + "'): '" + spelled[i] +
                               "' is not in the vocabulary");
            ids[i] = *id;
        }
        out.set(ids[0], ids[1], {static_cast<uint32_t>(rank), ids[2]});
    }
    return out;
}

Result<Bpe> Bpe::create(const Vocabulary& vocabulary, const std::vector<MergePair>& merges, WholeWords whole_words) {
    PB_TRY(MergeTable table, read_merge_table(vocabulary, merges));
    return with_table(vocabulary, std::move(table), whole_words);
}

Result<Bpe> Bpe::create_ranked(const Vocabulary& vocabulary) {
    constexpr size_t kMaxPairs = 1u << 23; // ten times those of the largest vocabularies
    struct Pair {
        TokenId left, right, whole;
    };
    std::vector<Pair> pairs;
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id) {
        const std::string_view spelled = vocabulary.spelled(id);
        if (spelled.empty()) continue;
        for (size_t at = character_length(spelled[0]); at < spelled.size(); at += character_length(spelled[at])) {
            const auto left = vocabulary.find(spelled.substr(0, at)), right = vocabulary.find(spelled.substr(at));
            if (left && right) pairs.push_back({*left, *right, id});
        }
        if (pairs.size() > kMaxPairs)
            return invalid("tokens come of more than " + std::to_string(kMaxPairs) + " pairs of other tokens");
    }
    MergeTable table(pairs.size());
    for (const auto& [left, right, whole] : pairs) table.set(left, right, {static_cast<uint32_t>(whole), whole});
    return with_table(vocabulary, std::move(table), WholeWords::kLookedUp);
}

Result<Bpe> Bpe::with_table(const Vocabulary& vocabulary, MergeTable table, WholeWords whole_words) {
    Bpe out(std::move(table));
    for (uint32_t b = 0; b < 256; ++b)
        out.byte_ids_[b] = vocabulary.find(spell_byte(static_cast<unsigned char>(b))).value_or(kNoToken);
    const auto lacking = std::count(out.byte_ids_.begin(), out.byte_ids_.end(), kNoToken);
    if (lacking == 256)
        return invalid("the vocabulary has a token for none of the 256 bytes (is it a byte-level one?)");
    out.lacks_bytes_ = lacking > 0;
    std::vector<TokenId> merged;
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id) {
        const auto bytes = spelled_bytes(vocabulary.spelled(id));
        if (!bytes) continue; // no word is spelled so
        merged.clear();
        if (whole_words == WholeWords::kMerged) out.merge(*bytes, merged);
        if (whole_words == WholeWords::kLookedUp || (merged.size() == 1 && merged[0] == id)) out.words_.add(*bytes, id);
    }
    return out;
}

void Bpe::encode(std::string_view word, std::vector<TokenId>& out) const {
    if (const auto whole = words_.find(word)) return out.push_back(*whole);
    constexpr size_t kMaxWordBytes = size_t{1} << 30; // positions are 32-bit
    for (; word.size() > kMaxWordBytes; word.remove_prefix(kMaxWordBytes)) merge(word.substr(0, kMaxWordBytes), out);
    merge(word, out);
}

void Bpe::merge(std::string_view word, std::vector<TokenId>& out) const {
    const size_t first = out.size();
    append_symbols(word, out);
    out.resize(first + merges_.merge(std::span(out).subspan(first)));
}

void Bpe::append_symbols(std::string_view word, std::vector<TokenId>& out) const {
    const size_t first = out.size();
    out.resize(first + word.size());
    for (size_t i = 0; i < word.size(); ++i) out[first + i] = byte_ids_[static_cast<unsigned char>(word[i])];
    if (!lacks_bytes_) return;
    size_t kept = first;
    bool in_run = false;
    for (size_t i = first; i < out.size(); ++i) {
        const TokenId id = out[i];
        if (id != kNoToken)
            out[kept++] = id;
        else if (unknown_.id != kNoToken && !(in_run && unknown_.fused))
            out[kept++] = unknown_.id;
        in_run = id == kNoToken;
    }
    out.resize(kept);
}

}  // namespace patchbay::text
