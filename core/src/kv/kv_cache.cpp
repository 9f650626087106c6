#include "kv/kv_cache.hpp"

namespace patchbay::kv {

KvCache::KvCache(uint32_t block_count, uint32_t block_size, PrefixCaching caching, std::string_view root)
    : pool_(block_count, block_size), caching_(caching), root_(root_key(root)) {}

// Calls visit(block, key) for each cached block of the longest cached chain that leaves a token to compute.
template <class Visit>
void KvCache::walk_prefix(std::span<const int32_t> tokens, Visit&& visit) const {
    if (!caches_prefixes() || tokens.empty()) return;
    const size_t full = (tokens.size() - 1) / block_size();
    BlockKey parent = root_;
    for (size_t i = 0; i < full; ++i) {
        const auto own = tokens.subspan(i * block_size(), block_size());
        const BlockKey key = child_key(parent, own);
        const auto block = pool_.find(key, parent, own);
        if (!block) return;
        visit(*block, key);
        parent = key;
    }
}

uint32_t KvCache::count_cached(std::span<const int32_t> tokens) const {
    uint32_t count = 0;
    walk_prefix(tokens, [&](BlockId, const BlockKey&) { count += block_size(); });
    return count;
}

uint32_t KvCache::adopt_prefix(BlockTable& table, std::span<const int32_t> tokens) {
    walk_prefix(tokens, [&](BlockId block, const BlockKey& key) {
        pool_.hold(block);
        table.blocks.push_back(block);
        table.keys.push_back(key);
    });
    return capacity(table);
}

bool KvCache::grow(BlockTable& table, uint32_t tokens) {
    const size_t wanted = (size_t{tokens} + block_size() - 1) / block_size();
    if (wanted > table.blocks.size() + pool_.free()) return false;
    while (table.blocks.size() < wanted) table.blocks.push_back(pool_.allocate());
    return true;
}

void KvCache::name_full_blocks(BlockTable& table, std::span<const int32_t> tokens) {
    if (!caches_prefixes()) return;
    const size_t full = tokens.size() / block_size();
    for (size_t i = table.keys.size(); i < full; ++i) {
        const auto own = tokens.subspan(i * block_size(), block_size());
        const BlockKey parent = i == 0 ? root_ : table.keys[i - 1];
        const BlockKey key = child_key(parent, own);
        pool_.name(table.blocks[i], key, parent, own);
        table.keys.push_back(key);
    }
}

void KvCache::release(BlockTable& table) {
    for (size_t i = table.blocks.size(); i-- > 0;) pool_.release(table.blocks[i]);
    table.blocks.clear();
    table.keys.clear();
}

Result<> KvCache::reset_prefixes() {
    if (pool_.used() > 0)
        return fail("cannot reset the prefix cache: " + std::to_string(pool_.used()) + " blocks are in use");
    pool_.forget_all();
    return {};
}

}  // namespace patchbay::kv
