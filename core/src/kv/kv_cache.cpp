#include "kv/kv_cache.hpp"

#include <algorithm>
#include <utility>

#include "kv/prefix_length.hpp"

namespace patchbay::kv {
namespace {

bool is_state(const GroupSpec& g) { return g.kind == GroupKind::kRecurrent; }

}  // namespace

KvCache::KvCache(uint32_t block_count, uint32_t block_size, PrefixCaching caching, std::string_view root,
                 std::vector<GroupSpec> groups, uint32_t swap_slots)
    : pool_(block_count, block_size), swap_(swap_slots), caching_(caching), root_(root_key(root)),
      groups_(std::move(groups)) {
    std::stable_partition(groups_.begin(), groups_.end(), [](const GroupSpec& g) { return !is_state(g); });
    for (const GroupSpec& g : groups_)
        if (!is_state(g)) windows_.push_back(g.window);
    if (state_pages() > 0) caching_ = PrefixCaching::kOff;
    watch_.emplace(pool_, windows_);
}

size_t KvCache::first_seen(size_t group, uint64_t computed) const {
    return first_seen_block(windows_[group], computed, block_size());
}

// The longest prefix that leaves a token to compute.
KvCache::Prefix KvCache::find_prefix(std::span<const int32_t> tokens, const BlockKey& salt) const {
    Prefix found{{}, std::vector<std::vector<BlockId>>(windows_.size())};
    if (!caches_prefixes() || tokens.empty()) return found;
    const size_t full = (tokens.size() - 1) / block_size();
    PrefixLength length(windows_, block_size());
    BlockKey parent = root(salt);
    for (size_t i = 0; i < full; ++i) {
        const auto own = tokens.subspan(i * block_size(), block_size());
        const BlockKey key = child_key(parent, own);
        for (size_t g = 0; g < windows_.size(); ++g) {
            const auto page = pool_.identities().find(in_group(key, g), in_group(parent, g), own);
            found.pages[g].push_back(page.value_or(kNoBlock));
        }
        if (!length.add([&](size_t g) { return found.pages[g][i] != kNoBlock; })) break;
        found.keys.push_back(key);
        parent = key;
    }
    const size_t blocks = length.blocks();
    found.keys.resize(blocks);
    for (size_t g = 0; g < windows_.size(); ++g) {
        found.pages[g].resize(blocks);
        const auto seen = static_cast<ptrdiff_t>(std::min(blocks, first_seen(g, blocks * block_size())));
        std::fill(found.pages[g].begin(), found.pages[g].begin() + seen, kNoBlock);
    }
    return found;
}

BlockKey KvCache::root(const BlockKey& salt) const {
    if (salt == BlockKey{}) return root_;
    const uint64_t parts[] = {root_.high, root_.low, salt.high, salt.low};
    return root_key({reinterpret_cast<const char*>(parts), sizeof parts});
}

CachedPrefix KvCache::cached_prefix(std::span<const int32_t> tokens, const BlockKey& salt) const {
    const Prefix prefix = find_prefix(tokens, salt);
    CachedPrefix out{static_cast<uint32_t>(prefix.keys.size()) * block_size(), 0};
    for (const auto& pages : prefix.pages)
        for (const BlockId page : pages) out.pages_in_use += page != kNoBlock && pool_.references(page) > 0;
    return out;
}

std::optional<size_t> KvCache::watch_prefix(std::span<const int32_t> tokens, const BlockKey& salt) {
    return caches_prefixes() ? watch_->add(tokens, root(salt)) : std::nullopt;
}

uint32_t KvCache::adopt_prefix(BlockTable& table, std::span<const int32_t> tokens, const BlockKey& salt) {
    Prefix prefix = find_prefix(tokens, salt);
    table.salt = salt;
    table.blocks = static_cast<uint32_t>(prefix.keys.size());
    table.keys = std::move(prefix.keys);
    table.pages = std::move(prefix.pages);
    table.pages.resize(groups_.size());
    table.passed.assign(groups_.size(), 0);
    for (size_t g = 0; g < windows_.size(); ++g) {
        table.passed[g] = static_cast<uint32_t>(first_seen(g, capacity(table)));
        for (size_t i = table.passed[g]; i < table.blocks; ++i) hold(g, table.pages[g][i]);
        table.held += table.blocks - std::min(table.blocks, table.passed[g]);
    }
    return capacity(table);
}

void KvCache::note_hits(const BlockTable& t, uint32_t tokens) {
    for (size_t g = 0; g < windows_.size(); ++g)
        for (size_t i = t.passed[g]; i < tokens / block_size(); ++i) pool_.eviction().pages().note_hit(t.pages[g][i]);
}

bool KvCache::can_fork(const BlockTable& from, uint32_t tokens) const {
    if (tokens == 0 || state_pages() > 0 || tokens > capacity(from)) return false;
    for (size_t g = 0; g < windows_.size(); ++g)
        if (from.passed[g] > first_seen(g, tokens)) return false;
    return true;
}

bool KvCache::fork(const BlockTable& from, uint32_t tokens, BlockTable& to) {
    if (!can_fork(from, tokens)) return false;
    const uint32_t blocks = (tokens + block_size() - 1) / block_size();
    to = {};
    to.salt = from.salt;
    to.blocks = blocks;
    to.keys.assign(from.keys.begin(), from.keys.begin() + static_cast<ptrdiff_t>(
                                          std::min<size_t>(from.keys.size(), tokens / block_size())));
    to.pages.resize(groups_.size());
    to.passed.assign(groups_.size(), 0);
    for (size_t g = 0; g < windows_.size(); ++g) {
        to.pages[g].assign(from.pages[g].begin(), from.pages[g].begin() + blocks);
        to.passed[g] = std::min(from.passed[g], blocks);
        for (size_t i = to.passed[g]; i < blocks; ++i) hold(g, to.pages[g][i]), to.held += 1;
    }
    return true;
}

uint32_t KvCache::shared_pages(const BlockTable& t, uint32_t at) const {
    const size_t block = at / block_size();
    uint32_t count = 0;
    for (size_t g = 0; g < windows_.size() && block < t.blocks; ++g)
        count += pool_.references(t.pages[g][block]) > 1;
    return count;
}

void KvCache::copy_on_write(BlockTable& t, uint32_t at) {
    const size_t block = at / block_size();
    for (size_t g = 0; g < windows_.size() && block < t.blocks; ++g) {
        BlockId& page = t.pages[g][block];
        if (pool_.references(page) == 1) {
            note_removed(page);
            pool_.forget(page); // other sequences have filled it since it was shared, and ended
            continue;
        }
        const BlockId own = allocate(g);
        copies_.push_back({own, page});
        let_go(g, std::exchange(page, own));
    }
}

void KvCache::note_removed(BlockId page) {
    const BlockKey* const key = recording_ ? pool_.identities().key_of(page) : nullptr;
    if (key && !pool_.identities().has_twin(page))
        events_.push_back({.kind = CacheEvent::Kind::kRemoved, .key = *key, .parent = {}, .tokens = {}});
}

BlockId KvCache::allocate(size_t group) {
    used_by(group) += 1;
    const BlockId next = pool_.eviction().next();
    if (next != kNoBlock && pool_.identities().key_of(next)) { // its content is evicted only now
        note_removed(next);
        if (zeroing_) clear(next);
    }
    return pool_.allocate();
}

void KvCache::hold(size_t group, BlockId page) {
    used_by(group) += pool_.references(page) == 0;
    pool_.hold(page);
}

void KvCache::let_go(size_t group, BlockId page, Reuse reuse) {
    reuse == Reuse::kFirst ? pool_.discard(page) : pool_.release(page);
    if (pool_.references(page) > 0) return;
    used_by(group) -= 1;
    if (zeroing_ && !pool_.identities().key_of(page)) clear(page);
}

uint64_t KvCache::pages_to_grow(const BlockTable& t, uint64_t tokens) const {
    const uint64_t wanted = (tokens + block_size() - 1) / block_size();
    const uint64_t states = t.pages.empty() || t.held == 0 ? state_pages() : 0;
    return (wanted > t.blocks ? wanted - t.blocks : 0) * windows_.size() + (tokens > 0 ? states : 0);
}

uint32_t KvCache::fitting(const BlockTable& t, uint32_t computed, uint32_t n) const {
    const uint32_t copies = shared_pages(t, computed);
    if (copies > pool_.free()) return 0;
    const uint64_t free = pool_.free() - copies;
    if (pages_to_grow(t, uint64_t{computed} + n) <= free) return n;
    if (windows_.empty() || pages_to_grow(t, uint64_t{computed} + 1) > free) return 0;
    const uint64_t states = pages_to_grow(t, 1) - (t.blocks == 0 ? windows_.size() : 0);
    const uint64_t room = (t.blocks + (free - states) / windows_.size()) * block_size();
    return static_cast<uint32_t>(std::min<uint64_t>(n, room - computed));
}

bool KvCache::grow(BlockTable& t, uint32_t tokens) {
    const uint64_t pages = pages_to_grow(t, tokens);
    if (pages > pool_.free()) return false;
    if (tokens == 0) return true;
    pool_.eviction().expect(pages);
    const bool first = t.held == 0;
    t.pages.resize(groups_.size());
    t.passed.resize(groups_.size(), 0);
    for (size_t g = windows_.size(); first && g < groups_.size(); ++g) t.pages[g].assign(1, allocate(g)), t.held += 1;
    for (const uint32_t wanted = (tokens + block_size() - 1) / block_size(); t.blocks < wanted; ++t.blocks)
        for (size_t g = 0; g < windows_.size(); ++g) t.pages[g].push_back(allocate(g)), t.held += 1;
    return true;
}

void KvCache::pass(BlockTable& t, uint32_t computed) {
    for (size_t g = 0; g < windows_.size() && t.held > 0; ++g) {
        const auto seen = static_cast<uint32_t>(std::min<size_t>(first_seen(g, computed), t.blocks));
        for (uint32_t i = seen; i-- > t.passed[g]; --t.held) let_go(g, std::exchange(t.pages[g][i], kNoBlock));
        t.passed[g] = std::max(t.passed[g], seen);
    }
}

void KvCache::cache_full_blocks(BlockTable& t, std::span<const int32_t> tokens) {
    if (!caches_prefixes()) return;
    const size_t full = tokens.size() / block_size();
    for (size_t i = t.keys.size(); i < full; ++i) {
        const auto own = tokens.subspan(i * block_size(), block_size());
        const BlockKey parent = i == 0 ? root(t.salt) : t.keys[i - 1];
        const BlockKey key = child_key(parent, own);
        for (size_t g = 0; g < windows_.size(); ++g)
            if (t.pages[g][i] != kNoBlock &&
                pool_.name(t.pages[g][i], in_group(key, g), in_group(parent, g), own,
                           {static_cast<uint32_t>(i) * block_size(), static_cast<uint32_t>(g)}) &&
                recording_)
                events_.push_back({CacheEvent::Kind::kStored, in_group(key, g), in_group(parent, g), i == 0,
                                   static_cast<uint32_t>(g), std::vector<int32_t>(own.begin(), own.end())});
        t.keys.push_back(key);
    }
}

void KvCache::forget(const BlockTable& t) {
    for (size_t g = 0; t.held > 0 && g < windows_.size(); ++g)
        for (const BlockId page : t.pages[g]) {
            if (page == kNoBlock) continue;
            note_removed(page);
            pool_.forget(page);
        }
}

void KvCache::release(BlockTable& t) { give_back(t, Reuse::kLast); }
void KvCache::discard(BlockTable& t) { give_back(t, Reuse::kFirst); }

void KvCache::give_back(BlockTable& t, Reuse reuse) {
    if (t.held > 0) {
        for (size_t i = t.blocks; i-- > 0;)
            for (size_t g = 0; g < windows_.size(); ++g)
                if (i >= t.passed[g]) let_go(g, t.pages[g][i], reuse);
        for (size_t g = windows_.size(); g < groups_.size(); ++g) let_go(g, t.pages[g][0], reuse);
    }
    t = {};
}

uint32_t KvCache::pages_freed_if_preempted(const BlockTable& t) const {
    uint32_t count = t.held;
    for (size_t g = 0; g < t.pages.size(); ++g)
        for (size_t i = t.passed[g]; i < t.pages[g].size(); ++i) count -= pool_.references(t.pages[g][i]) > 1;
    return count;
}

Result<> KvCache::reset_prefixes() {
    if (pool_.used() > 0)
        return fail(StatusCode::kUnavailable,
                    "cannot reset the prefix cache: " + std::to_string(pool_.used()) + " blocks are in use");
    forget_prefixes();
    return {};
}

void KvCache::forget_prefixes() {
    for (uint32_t b = 0; zeroing_ && b < pool_.total(); ++b)
        if (const auto page = static_cast<BlockId>(b); pool_.identities().key_of(page)) clear(page);
    pool_.forget_all();
    if (recording_)
        events_.push_back({.kind = CacheEvent::Kind::kCleared, .key = {}, .parent = {}, .tokens = {}});
}

}  // namespace patchbay::kv
