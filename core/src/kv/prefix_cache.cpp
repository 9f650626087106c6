#include "kv/prefix_cache.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kv/prefix_length.hpp"

namespace patchbay::kv {

PrefixCache::PrefixCache(PrefixCaching caching, std::string_view root, const TableShape& shape, GroupPages& pages,
                         CacheEvents& events)
    : caching_(shape.state_pages() > 0 ? PrefixCaching::kOff : caching), root_(root_key(root)), shape_(shape),
      pages_(pages), events_(events), watch_(pages.pool(), shape.windows()) {}

// The longest prefix that leaves a token to compute.
PrefixCache::Prefix PrefixCache::find(std::span<const int32_t> tokens, const BlockKey& salt) const {
    const auto windows = shape_.windows();
    const uint32_t size = shape_.block_size();
    const BlockIdentities& identities = pages_.pool().identities();
    Prefix found{{}, std::vector<std::vector<BlockId>>(windows.size())};
    if (!enabled() || tokens.empty()) return found;
    const size_t full = (tokens.size() - 1) / size;
    PrefixLength length(windows, size);
    BlockKey parent = root(salt);
    for (size_t i = 0; i < full; ++i) {
        const auto own = tokens.subspan(i * size, size);
        const BlockKey key = child_key(parent, own);
        for (size_t g = 0; g < windows.size(); ++g)
            found.pages[g].push_back(identities.find(in_group(key, g), in_group(parent, g), own).value_or(kNoBlock));
        if (!length.add([&](size_t g) { return found.pages[g][i] != kNoBlock; })) break;
        found.keys.push_back(key);
        parent = key;
    }
    const size_t blocks = length.blocks();
    found.keys.resize(blocks);
    for (size_t g = 0; g < windows.size(); ++g) {
        found.pages[g].resize(blocks);
        const auto seen = static_cast<ptrdiff_t>(std::min(blocks, shape_.first_seen(g, blocks * size)));
        std::fill(found.pages[g].begin(), found.pages[g].begin() + seen, kNoBlock);
    }
    return found;
}

BlockKey PrefixCache::root(const BlockKey& salt) const {
    if (salt == BlockKey{}) return root_;
    const uint64_t parts[] = {root_.high, root_.low, salt.high, salt.low};
    return root_key({reinterpret_cast<const char*>(parts), sizeof parts});
}

CachedPrefix PrefixCache::cached(std::span<const int32_t> tokens, const BlockKey& salt) const {
    const Prefix prefix = find(tokens, salt);
    CachedPrefix out{static_cast<uint32_t>(prefix.keys.size()) * shape_.block_size(), 0};
    for (const auto& pages : prefix.pages)
        for (const BlockId page : pages)
            out.pages_in_use += page != kNoBlock && pages_.pool().references(page) > 0;
    return out;
}

std::optional<size_t> PrefixCache::watch(std::span<const int32_t> tokens, const BlockKey& salt) {
    return enabled() ? watch_.add(tokens, root(salt)) : std::nullopt;
}

uint32_t PrefixCache::adopt(BlockTable& table, std::span<const int32_t> tokens, const BlockKey& salt) {
    Prefix prefix = find(tokens, salt);
    table.salt = salt;
    table.blocks = static_cast<uint32_t>(prefix.keys.size());
    table.keys = std::move(prefix.keys);
    table.pages = std::move(prefix.pages);
    table.pages.resize(shape_.groups().size());
    table.freed_prefix.assign(shape_.groups().size(), 0);
    for (size_t g = 0; g < shape_.windows().size(); ++g) {
        table.freed_prefix[g] = static_cast<uint32_t>(shape_.first_seen(g, shape_.capacity(table)));
        for (size_t i = table.freed_prefix[g]; i < table.blocks; ++i) pages_.hold(g, table.pages[g][i]);
        table.held += table.blocks - std::min(table.blocks, table.freed_prefix[g]);
    }
    return shape_.capacity(table);
}

void PrefixCache::note_hits(const BlockTable& t, uint32_t tokens) {
    CachedPages& cached = pages_.pool().eviction().pages();
    for (size_t g = 0; g < shape_.windows().size(); ++g)
        for (size_t i = t.freed_prefix[g]; i < tokens / shape_.block_size(); ++i) cached.note_hit(t.pages[g][i]);
}

void PrefixCache::cache_full_blocks(BlockTable& t, std::span<const int32_t> tokens) {
    if (!enabled()) return;
    const uint32_t size = shape_.block_size();
    const size_t full = tokens.size() / size;
    for (size_t i = t.keys.size(); i < full; ++i) {
        const auto own = tokens.subspan(i * size, size);
        const BlockKey parent = i == 0 ? root(t.salt) : t.keys[i - 1];
        const BlockKey key = child_key(parent, own);
        for (uint32_t g = 0; g < shape_.windows().size(); ++g)
            if (t.pages[g][i] != kNoBlock &&
                pages_.pool().name(t.pages[g][i], in_group(key, g), in_group(parent, g), own,
                                   {static_cast<uint32_t>(i) * size, g}))
                events_.stored(in_group(key, g), in_group(parent, g), i == 0, g, own);
        t.keys.push_back(key);
    }
}

void PrefixCache::forget(const BlockTable& t) {
    for (size_t g = 0; t.held > 0 && g < shape_.windows().size(); ++g)
        for (const BlockId page : t.pages[g])
            if (page != kNoBlock) pages_.forget(page);
}

BlockId PrefixCache::page_of(const BlockTable& t, size_t block, size_t group, std::span<const int32_t> of) const {
    if (block >= t.keys.size()) return kNoBlock;
    const BlockKey parent = block == 0 ? root(t.salt) : t.keys[block - 1];
    const auto own = of.subspan(block * shape_.block_size(), shape_.block_size());
    const BlockIdentities& identities = pages_.pool().identities();
    return identities.find(in_group(t.keys[block], group), in_group(parent, group), own).value_or(kNoBlock);
}

Result<> PrefixCache::reset() {
    if (const uint32_t used = pages_.pool().used(); used > 0)
        return fail(StatusCode::kUnavailable,
                    "cannot reset the prefix cache: " + std::to_string(used) + " blocks are in use");
    pages_.forget_all();
    return {};
}

void PrefixCache::start_over(std::string_view root) {
    root_ = root_key(root);
    pages_.forget_all();
}

}  // namespace patchbay::kv
