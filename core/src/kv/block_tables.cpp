#include "kv/block_tables.hpp"

#include <algorithm>
#include <utility>

namespace patchbay::kv {

// ---- growing and giving back ----

uint32_t BlockTables::fitting(const BlockTable& t, uint32_t computed, uint32_t n) const {
    const size_t groups = shape_.windows().size();
    const uint32_t copies = shared_pages(t, computed);
    if (copies > pool().free()) return 0;
    const uint64_t free = pool().free() - copies;
    if (shape_.lacking(t, uint64_t{computed} + n) <= free) return n;
    if (groups == 0 || shape_.lacking(t, uint64_t{computed} + 1) > free) return 0;
    const uint64_t states = shape_.lacking(t, 1) - (t.blocks == 0 ? groups : 0);
    const uint64_t room = (t.blocks + (free - states) / groups) * shape_.block_size();
    return static_cast<uint32_t>(std::min<uint64_t>(n, room - computed));
}

bool BlockTables::grow(BlockTable& t, uint32_t tokens) {
    const uint64_t pages = shape_.lacking(t, tokens);
    if (pages > pool().free()) return false;
    if (pages == 0) return true;
    pages_.pool().eviction().expect(pages);
    const bool first = t.held == 0;
    const size_t all = shape_.groups().size(), of_tokens = shape_.windows().size();
    t.pages.resize(all);
    t.freed_prefix.resize(all, 0);
    for (size_t g = of_tokens; first && g < all; ++g) t.pages[g].assign(1, pages_.allocate(g)), t.held += 1;
    for (const uint64_t wanted = shape_.blocks_for(tokens); t.blocks < wanted; ++t.blocks)
        for (size_t g = 0; g < of_tokens; ++g) t.pages[g].push_back(pages_.allocate(g)), t.held += 1;
    return true;
}

void BlockTables::free_outside_window(BlockTable& t, uint32_t computed) {
    for (size_t g = 0; g < shape_.windows().size() && t.held > 0; ++g) {
        const auto seen = static_cast<uint32_t>(std::min<size_t>(shape_.first_seen(g, computed), t.blocks));
        uint32_t& freed = t.freed_prefix[g];
        for (uint32_t i = seen; i-- > freed; --t.held) pages_.let_go(g, std::exchange(t.pages[g][i], kNoBlock));
        freed = std::max(freed, seen);
    }
}

void BlockTables::give_back(BlockTable& t, Reuse reuse) {
    if (t.held > 0) {
        const size_t of_tokens = shape_.windows().size();
        for (size_t i = t.blocks; i-- > 0;)
            for (size_t g = 0; g < of_tokens; ++g)
                if (i >= t.freed_prefix[g]) pages_.let_go(g, t.pages[g][i], reuse);
        for (size_t g = of_tokens; g < shape_.groups().size(); ++g) pages_.let_go(g, t.pages[g][0], reuse);
    }
    t = {};
}

// ---- sharing ----

bool BlockTables::can_fork(const BlockTable& from, uint32_t tokens) const {
    if (tokens == 0 || shape_.state_pages() > 0 || tokens > shape_.capacity(from)) return false;
    for (size_t g = 0; g < shape_.windows().size(); ++g)
        if (from.freed_prefix[g] > shape_.first_seen(g, tokens)) return false;
    return true;
}

bool BlockTables::fork(const BlockTable& from, uint32_t tokens, BlockTable& to) {
    if (!can_fork(from, tokens)) return false;
    const auto blocks = static_cast<uint32_t>(shape_.blocks_for(tokens));
    to = {};
    to.salt = from.salt;
    to.blocks = blocks;
    to.keys.assign(from.keys.begin(), from.keys.begin() + static_cast<ptrdiff_t>(std::min<size_t>(
                                          from.keys.size(), tokens / shape_.block_size())));
    to.pages.resize(shape_.groups().size());
    to.freed_prefix.assign(shape_.groups().size(), 0);
    for (size_t g = 0; g < shape_.windows().size(); ++g) {
        to.pages[g].assign(from.pages[g].begin(), from.pages[g].begin() + blocks);
        to.freed_prefix[g] = std::min(from.freed_prefix[g], blocks);
        for (size_t i = to.freed_prefix[g]; i < blocks; ++i) pages_.hold(g, to.pages[g][i]), to.held += 1;
    }
    return true;
}

uint32_t BlockTables::shared_pages(const BlockTable& t, uint32_t at) const {
    const size_t block = at / shape_.block_size();
    uint32_t count = 0;
    for (size_t g = 0; g < shape_.windows().size() && block < t.blocks; ++g)
        count += pool().references(t.pages[g][block]) > 1;
    return count;
}

void BlockTables::copy_on_write(BlockTable& t, uint32_t at) {
    const size_t block = at / shape_.block_size();
    for (size_t g = 0; g < shape_.windows().size() && block < t.blocks; ++g) {
        BlockId& page = t.pages[g][block];
        if (pool().references(page) == 1) {
            pages_.forget(page); // other sequences have filled it since it was shared, and ended
            continue;
        }
        const BlockId own = pages_.allocate(g);
        copies_.add({own, page});
        pages_.let_go(g, std::exchange(page, own));
    }
}

uint32_t BlockTables::pages_freed_if_preempted(const BlockTable& t) const {
    uint32_t count = t.held;
    for (size_t g = 0; g < t.pages.size(); ++g)
        for (size_t i = t.freed_prefix[g]; i < t.pages[g].size(); ++i) count -= pool().references(t.pages[g][i]) > 1;
    return count;
}

}  // namespace patchbay::kv
