#include "text/merge_table.hpp"

#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <queue>

namespace patchbay::text {
namespace {

constexpr size_t kShort = 32;           // ids: below, looking at every neighbour beats a heap
constexpr uint64_t kEmpty = UINT64_MAX; // no pair: ids are not negative

uint64_t pair_key(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}
uint64_t mix(uint64_t key) { return (key ^ key >> 29) * 0x9E3779B97F4A7C15u; }

}  // namespace

MergeTable::MergeTable(size_t merges) {
    const size_t size = std::bit_ceil(std::max<size_t>(16, merges * 2));
    slots_.assign(size, {kEmpty, {kNoRank, 0}});
    shift_ = 64 - static_cast<uint32_t>(std::countr_zero(size));
}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
    const uint64_t pair = pair_key(left, right);
    size_t at = mix(pair) >> shift_;
    while (slots_[at].pair != pair && slots_[at].pair != kEmpty) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {pair, merge};
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const {
    const uint64_t pair = pair_key(left, right);
    size_t at = mix(pair) >> shift_;
    while (slots_[at].pair != pair) {
        if (slots_[at].pair == kEmpty) return {kNoRank, 0};
        at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at].merge;
}

size_t MergeTable::merge(std::span<TokenId> ids) const {
    return ids.size() <= kShort ? merge_short(ids) : merge_long(ids);
}

size_t MergeTable::merge_short(std::span<TokenId> ids) const {
    std::array<Merge, kShort + 1> merges; // of a token and its right neighbour
    size_t n = ids.size();
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
    return n;
}

size_t MergeTable::merge_long(std::span<TokenId> ids) const {
    constexpr TokenId kGone = -1;
    constexpr uint32_t kEnd = UINT32_MAX;
    struct Symbol {
        TokenId id;
        uint32_t before, after;
    };
    const auto n = static_cast<uint32_t>(ids.size());
    std::vector<Symbol> symbols(n);
    for (uint32_t i = 0; i < n; ++i) symbols[i] = {ids[i], i == 0 ? kEnd : i - 1, i + 1 == n ? kEnd : i + 1};
    // rank << 32 | position of the left one. Entries are not removed when their symbols change: an entry is stale when
    // the pair at its position has another rank. Where it has the same rank, its own entry is equal to the stale one.
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
    size_t kept = 0;
    for (uint32_t i = 0; i != kEnd; i = symbols[i].after) ids[kept++] = symbols[i].id;
    return kept;
}

}  // namespace patchbay::text
