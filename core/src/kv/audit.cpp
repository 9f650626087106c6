// Checks that the bookkeeping of the KV cache is consistent. Not used while serving.
#include <algorithm>

#include "kv/kv_cache.hpp"

namespace patchbay::kv {
namespace {

std::string block(size_t b) { return "block " + std::to_string(b); }

}  // namespace

Result<> BlockPool::audit(std::span<const uint32_t> references) const {
    for (size_t b = 0; b < blocks_.size(); ++b)
        if (blocks_[b].references != references[b])
            return fail(block(b) + " counts " + std::to_string(blocks_[b].references) + " references, and " +
                        std::to_string(references[b]) + " tables hold it");
    std::vector<bool> listed(blocks_.size(), false);
    uint32_t free = 0, cached = 0;
    BlockId previous = kNoBlock;
    for (BlockId b = first_free_; b != kNoBlock; previous = b, b = blocks_[static_cast<size_t>(b)].next) {
        const Block& at = blocks_[static_cast<size_t>(b)];
        if (listed[static_cast<size_t>(b)]) return fail("the free list comes back to " + block(static_cast<size_t>(b)));
        listed[static_cast<size_t>(b)] = true;
        if (at.references > 0) return fail(block(static_cast<size_t>(b)) + " is in the free list and in use");
        if (at.previous != previous) return fail("the free list is torn at " + block(static_cast<size_t>(b)));
        free += 1;
        cached += at.named;
    }
    if (previous != last_free_) return fail("the free list does not end where it should");
    if (free != free_count_ || cached != cached_count_)
        return fail("the free list has " + std::to_string(free) + " blocks, " + std::to_string(cached) +
                    " of them cached; counted are " + std::to_string(free_count_) + " and " +
                    std::to_string(cached_count_));
    const auto in_use =
        static_cast<uint32_t>(std::count_if(references.begin(), references.end(), [](uint32_t n) { return n > 0; }));
    if (free + in_use != total())
        return fail(std::to_string(free) + " blocks are free and " + std::to_string(in_use) + " in use, of " +
                    std::to_string(total()));
    size_t named = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
        if (!blocks_[b].named) continue;
        named += 1;
        if (!by_key_.contains(blocks_[b].key)) return fail(block(b) + " has an identity by which it is not found");
    }
    size_t found = 0;
    for (const auto& [key, first] : by_key_) {
        bool all_in_use = true; // of the blocks so far
        BlockId b = first;
        do {
            const Block& twin = blocks_[static_cast<size_t>(b)];
            if (!twin.named || !(twin.key == key) || ++found > named)
                return fail(block(static_cast<size_t>(b)) + " is found by an identity that it does not have");
            if (twin.references > 0 && !all_in_use)
                return fail(block(static_cast<size_t>(b)) + " is in use, after a free block of the same identity");
            all_in_use = twin.references > 0;
            b = twin.next_twin;
        } while (b != first);
    }
    if (found != named)
        return fail(std::to_string(found) + " blocks are found by their identity, of " + std::to_string(named));
    return {};
}

Result<> KvCache::audit(std::span<const BlockTable* const> tables) const {
    std::vector<uint32_t> references(pool_.total(), 0);
    std::vector<size_t> group_of(pool_.total(), SIZE_MAX);
    for (const BlockTable* t : tables) {
        uint32_t held = 0;
        if (!t->pages.empty() && t->pages.size() != groups_.size())
            return fail("a table has " + std::to_string(t->pages.size()) + " groups of " +
                        std::to_string(groups_.size()));
        if (t->keys.size() > t->blocks) return fail("a table has more names than blocks");
        for (size_t g = 0; g < t->pages.size(); ++g) {
            const auto& pages = t->pages[g];
            const bool tokens = g < windows_.size();
            if (tokens && (pages.size() != t->blocks || t->passed[g] > t->blocks))
                return fail("a table of " + std::to_string(t->blocks) + " blocks has " + std::to_string(pages.size()) +
                            " pages in a group, " + std::to_string(t->passed[g]) + " of them passed");
            for (size_t i = 0; i < pages.size(); ++i) {
                const bool passed = tokens && i < t->passed[g];
                if (passed != (pages[i] == kNoBlock)) return fail("a table has a gap after its freed blocks");
                if (passed) continue;
                const auto page = static_cast<size_t>(pages[i]);
                if (page >= references.size()) return fail("a table has page " + std::to_string(pages[i]));
                if (group_of[page] != SIZE_MAX && group_of[page] != g) return fail(block(page) + " is in two groups");
                group_of[page] = g;
                references[page] += 1;
                held += 1;
            }
        }
        if (held != t->held)
            return fail("a table holds " + std::to_string(held) + " pages and counts " + std::to_string(t->held));
    }
    std::array<uint32_t, kGroupKinds> used{};
    for (const size_t g : group_of)
        if (g != SIZE_MAX) used[static_cast<size_t>(groups_[g].kind)] += 1;
    if (used != used_) return fail("pages in use by kind of group are counted wrongly");
    return pool_.audit(references);
}

}  // namespace patchbay::kv
