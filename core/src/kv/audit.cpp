// Checks that the bookkeeping of the KV cache is consistent. Not used while serving.
#include <array>
#include <string>

#include "base/refusals.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::kv {
namespace {

std::string block(size_t b) { return "block " + std::to_string(b); }

}  // namespace

Result<> KvCache::audit(std::span<const BlockTable* const> tables) const {
    const auto groups = shape_.groups();
    const BlockPool& pool = pages_.pool();
    std::vector<uint32_t> references(pool.total(), 0);
    std::vector<size_t> group_of(pool.total(), SIZE_MAX);
    for (const BlockTable* t : tables) {
        uint32_t held = 0;
        if (!t->pages.empty() && t->pages.size() != groups.size())
            return broken("a table has " + std::to_string(t->pages.size()) + " groups of " +
                          std::to_string(groups.size()));
        if (t->keys.size() > t->blocks) return broken("a table has more names than blocks");
        for (size_t g = 0; g < t->pages.size(); ++g) {
            const auto& pages = t->pages[g];
            const bool tokens = g < shape_.windows().size();
            if (tokens && (pages.size() != t->blocks || t->freed_prefix[g] > t->blocks))
                return broken("a table of " + std::to_string(t->blocks) + " blocks has " +
                              std::to_string(pages.size()) + " pages in a group, " +
                              std::to_string(t->freed_prefix[g]) + " of them freed");
            for (size_t i = 0; i < pages.size(); ++i) {
                const bool freed = tokens && i < t->freed_prefix[g];
                if (freed != (pages[i] == kNoBlock)) return broken("a table has a gap after its freed blocks");
                if (freed) continue;
                const auto page = static_cast<size_t>(pages[i]);
                if (page >= references.size()) return broken("a table has page " + std::to_string(pages[i]));
                if (group_of[page] != SIZE_MAX && group_of[page] != g) return broken(block(page) + " is in two groups");
                group_of[page] = g;
                references[page] += 1;
                held += 1;
            }
        }
        if (held != t->held)
            return broken("a table holds " + std::to_string(held) + " pages and counts " + std::to_string(t->held));
    }
    std::array<uint32_t, kGroupKinds> used{};
    for (const size_t g : group_of)
        if (g != SIZE_MAX) used[static_cast<size_t>(groups[g].kind)] += 1;
    if (used != pages_.used()) return broken("pages in use by kind of group are counted wrongly");
    return pool.audit(references);
}

}  // namespace patchbay::kv
