#include "text/bpe.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "text/byte_alphabet.hpp"

namespace patchbay::text {
namespace {

constexpr size_t kShort = 32; // bytes: below, looking at every neighbour beats a heap

uint64_t pair_key(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}
uint64_t mix(uint64_t key) { return (key ^ key >> 29) * 0x9E3779B97F4A7C15u; }

}  // namespace

Bpe::Slot& Bpe::slot(uint64_t pair) {
    size_t at = mix(pair) >> shift_;
    while (slots_[at].pair != pair && slots_[at].pair != kEmpty) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
}

Bpe::Merge Bpe::find(TokenId left, TokenId right) const {
    const uint64_t pair = pair_key(left, right);
    size_t at = mix(pair) >> shift_;
    while (slots_[at].pair != pair) {
        if (slots_[at].pair == kEmpty) return {kNoRank, 0};
        at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at].merge;
}

Result<Bpe> Bpe::create(const Vocabulary& vocabulary, const std::vector<Pair>& merges, WholeWords whole_words) {
    Bpe out;
    for (uint32_t b = 0; b < 256; ++b) {
        const std::string spelled = spell_byte(static_cast<unsigned char>(b));
        const auto id = vocabulary.find(spelled);
        if (!id)
            return fail("the vocabulary lacks '" + spelled + "', the byte " + std::to_string(b) +
                        " (is it a byte-level one?)");
        out.byte_ids_[b] = *id;
    }
    const size_t size = std::bit_ceil(std::max<size_t>(16, merges.size() * 2));
    out.slots_.assign(size, {kEmpty, {kNoRank, 0}});
    out.shift_ = 64 - static_cast<uint32_t>(std::countr_zero(size));
    for (size_t rank = 0; rank < merges.size(); ++rank) {
        const auto& [left, right] = merges[rank];
        TokenId ids[3];
        const std::string spelled[3] = {left, right, left + right};
        for (int i = 0; i < 3; ++i) {
            const auto id = vocabulary.find(spelled[i]);
            if (!id)
                return fail("merge " + std::to_string(rank) + " ('" + left + "' + '" + right + "'): '" + spelled[i] +
                            "' is not in the vocabulary");
            ids[i] = *id;
        }
        const uint64_t pair = pair_key(ids[0], ids[1]);
        out.slot(pair) = {pair, {static_cast<uint32_t>(rank), ids[2]}};
    }
    if (whole_words == WholeWords::kLookedUp) {
        const auto whole = [&](TokenId id) { return vocabulary.kind(id) == TokenKind::kVocabulary; };
        for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id)
            if (whole(id)) out.words_.emplace(vocabulary.bytes(id), id);
    }
    return out;
}

void Bpe::encode(std::string_view word, std::vector<TokenId>& out) const {
    if (!words_.empty())
        if (const auto at = words_.find(word); at != words_.end()) return out.push_back(at->second);
    constexpr size_t kMost = size_t{1} << 30; // positions are 32-bit
    for (; word.size() > kMost; word.remove_prefix(kMost)) encode_long(word.substr(0, kMost), out);
    if (word.size() <= kShort)
        encode_short(word, out);
    else
        encode_long(word, out);
}

void Bpe::encode_short(std::string_view word, std::vector<TokenId>& out) const {
    std::array<TokenId, kShort + 1> ids;
    std::array<Merge, kShort + 1> merges; // of a token and its right neighbour
    size_t n = word.size();
    for (size_t i = 0; i < n; ++i) ids[i] = byte_ids_[static_cast<unsigned char>(word[i])];
    for (size_t i = 0; i + 1 < n; ++i) merges[i] = find(ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; ++i)
            if (merges[i].rank < merges[best].rank) best = i;
        if (merges[best].rank == kNoRank) break;
        ids[best] = merges[best].id;
        --n;
        for (size_t i = best + 1; i < n; ++i) {
            ids[i] = ids[i + 1];
            merges[i] = merges[i + 1];
        }
        if (best > 0) merges[best - 1] = find(ids[best - 1], ids[best]);
        if (best + 1 < n) merges[best] = find(ids[best], ids[best + 1]);
    }
    out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
}

void Bpe::encode_long(std::string_view word, std::vector<TokenId>& out) const {
    constexpr TokenId kGone = -1;
    constexpr uint32_t kEnd = UINT32_MAX;
    struct Symbol {
        TokenId id;
        uint32_t before, after;
    };
    const auto n = static_cast<uint32_t>(word.size());
    std::vector<Symbol> symbols(n);
    for (uint32_t i = 0; i < n; ++i)
        symbols[i] = {byte_ids_[static_cast<unsigned char>(word[i])], i == 0 ? kEnd : i - 1, i + 1 == n ? kEnd : i + 1};
    // rank << 32 | position of the left one. Entries are not removed when their symbols change: a rank belongs to one
    // pair, so an entry is stale when the pair at its position has another rank.
    std::vector<uint64_t> waiting;
    const auto candidate = [&](uint32_t i) -> std::optional<uint64_t> {
        if (i == kEnd || symbols[i].after == kEnd) return std::nullopt;
        const Merge merge = find(symbols[i].id, symbols[symbols[i].after].id);
        return merge.rank == kNoRank ? std::nullopt : std::optional(uint64_t{merge.rank} << 32 | i);
    };
    for (uint32_t i = 0; i < n; ++i)
        if (const auto c = candidate(i)) waiting.push_back(*c);
    std::priority_queue queue(std::greater<uint64_t>{}, std::move(waiting));
    while (!queue.empty()) {
        const uint64_t top = queue.top();
        queue.pop();
        const auto i = static_cast<uint32_t>(top);
        Symbol& left = symbols[i];
        if (left.id == kGone || left.after == kEnd) continue;
        Symbol& right = symbols[left.after];
        const Merge merge = find(left.id, right.id);
        if (merge.rank != top >> 32) continue;
        left.id = merge.id;
        right.id = kGone;
        left.after = right.after;
        if (left.after != kEnd) symbols[left.after].before = i;
        if (const auto c = candidate(left.before)) queue.push(*c);
        if (const auto c = candidate(i)) queue.push(*c);
    }
    for (uint32_t i = 0; i != kEnd; i = symbols[i].after) out.push_back(symbols[i].id);
}

}  // namespace patchbay::text
