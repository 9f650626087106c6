#include "kv/kv_swap.hpp"

#include <algorithm>
#include <cassert>

namespace patchbay::kv {

bool KvSwap::out(BlockTable& t, uint32_t tokens, SwappedTable& out) {
    assert(out.empty() && t.held > 0);
    const size_t all = p_.shape.groups().size(), of_tokens = p_.shape.windows().size();
    const auto blocks = static_cast<uint32_t>(std::min<uint64_t>(t.blocks, p_.shape.blocks_for(tokens)));
    uint64_t wanted = p_.shape.state_pages();
    for (size_t g = 0; g < of_tokens; ++g) wanted += blocks - std::min(blocks, t.freed_prefix[g]);
    if (wanted > space_.free()) return false;

    out.tokens = tokens;
    out.slots.blocks = blocks;
    out.slots.keys = t.keys;
    out.slots.salt = t.salt;
    if (out.slots.keys.size() > blocks) out.slots.keys.resize(blocks);
    out.slots.pages.resize(all);
    out.slots.freed_prefix.assign(all, 0);
    const auto move_out = [&](size_t g, BlockId page) {
        const BlockId slot = space_.take();
        p_.copies.add({slot, page, Way::kToHost});
        out.slots.pages[g].push_back(slot);
        out.slots.held += 1;
    };
    for (size_t g = 0; g < of_tokens; ++g) {
        out.slots.freed_prefix[g] = std::min(blocks, t.freed_prefix[g]);
        out.slots.pages[g].assign(out.slots.freed_prefix[g], kNoBlock);
        for (size_t i = out.slots.freed_prefix[g]; i < blocks; ++i) move_out(g, t.pages[g][i]);
    }
    for (size_t g = of_tokens; g < all; ++g) move_out(g, t.pages[g][0]);
    p_.tables.release(t);
    return true;
}

bool KvSwap::in(const SwappedTable& s, std::span<const int32_t> of, uint32_t room, BlockTable& t) {
    assert(!s.empty() && t.held == 0 && room >= s.tokens);
    const size_t all = p_.shape.groups().size(), of_tokens = p_.shape.windows().size();
    t = {};
    t.pages.resize(all);
    // Cached blocks are held first, so that they are not taken for the others.
    const uint64_t blocks = p_.shape.blocks_for(room);
    uint64_t wanted = p_.shape.state_pages() + (blocks - std::min<uint64_t>(blocks, s.slots.blocks)) * of_tokens;
    for (size_t g = 0; g < of_tokens; ++g) {
        t.pages[g].assign(s.slots.blocks, kNoBlock);
        for (size_t i = s.slots.freed_prefix[g]; i < s.slots.blocks; ++i) {
            const BlockId there = p_.prefixes.page_of(s.slots, i, g, of);
            if (there == kNoBlock) wanted += 1;
            else p_.pages.hold(g, t.pages[g][i] = there);
        }
    }
    if (wanted > p_.pages.pool().free()) {
        for (size_t i = s.slots.blocks; i-- > 0;)
            for (size_t g = 0; g < of_tokens; ++g)
                if (t.pages[g][i] != kNoBlock) p_.pages.let_go(g, t.pages[g][i]);
        t = {};
        return false;
    }
    p_.pages.pool().eviction().expect(wanted);
    const auto move_in = [&](size_t g, BlockId slot) {
        const BlockId page = p_.pages.allocate(g);
        p_.copies.add({page, slot, Way::kToDevice});
        return page;
    };
    for (size_t g = 0; g < of_tokens; ++g)
        for (size_t i = s.slots.freed_prefix[g]; i < s.slots.blocks; ++i)
            if (t.pages[g][i] == kNoBlock) t.pages[g][i] = move_in(g, s.slots.pages[g][i]);
    for (size_t g = of_tokens; g < all; ++g) t.pages[g].assign(1, move_in(g, s.slots.pages[g][0]));
    t.blocks = s.slots.blocks;
    t.freed_prefix = s.slots.freed_prefix;
    t.salt = s.slots.salt;
    t.held = s.slots.held;
    return p_.tables.grow(t, room);
}

void KvSwap::drop(SwappedTable& s) {
    for (const auto& group : s.slots.pages)
        for (const BlockId slot : group) {
            if (slot == kNoBlock) continue;
            space_.give_back(slot);
            p_.copies.zero_slot(slot);
        }
    s = {};
}

}  // namespace patchbay::kv
