// KV in host memory: copies a table's pages out to slots, and back into pages.
#include <algorithm>
#include <cassert>
#include <utility>

#include "kv/kv_cache.hpp"

namespace patchbay::kv {

bool KvCache::swap_out(BlockTable& t, uint32_t tokens, SwappedTable& out) {
    assert(out.empty() && t.held > 0);
    const uint32_t blocks = std::min(t.blocks, (tokens + block_size() - 1) / block_size());
    uint64_t wanted = state_pages();
    for (size_t g = 0; g < windows_.size(); ++g) wanted += blocks - std::min(blocks, t.passed[g]);
    if (wanted > swap_.free()) return false;

    out.tokens = tokens;
    out.slots.blocks = blocks;
    out.slots.keys = t.keys;
    out.slots.salt = t.salt;
    if (out.slots.keys.size() > blocks) out.slots.keys.resize(blocks);
    out.slots.pages.resize(groups_.size());
    out.slots.passed.assign(groups_.size(), 0);
    const auto move_out = [&](size_t g, BlockId page) {
        const BlockId slot = swap_.take();
        copies_.push_back({slot, page, Way::kToHost});
        out.slots.pages[g].push_back(slot);
        out.slots.held += 1;
    };
    for (size_t g = 0; g < windows_.size(); ++g) {
        out.slots.passed[g] = std::min(blocks, t.passed[g]);
        out.slots.pages[g].assign(out.slots.passed[g], kNoBlock);
        for (size_t i = out.slots.passed[g]; i < blocks; ++i) move_out(g, t.pages[g][i]);
    }
    for (size_t g = windows_.size(); g < groups_.size(); ++g) move_out(g, t.pages[g][0]);
    release(t);
    return true;
}

BlockId KvCache::still_cached(const SwappedTable& s, std::span<const int32_t> of, size_t group, size_t block) const {
    if (block >= s.slots.keys.size()) return kNoBlock;
    const BlockKey parent = block == 0 ? root(s.slots.salt) : s.slots.keys[block - 1];
    const auto own = of.subspan(block * block_size(), block_size());
    const BlockKey& key = s.slots.keys[block];
    return pool_.identities().find(in_group(key, group), in_group(parent, group), own).value_or(kNoBlock);
}

bool KvCache::swap_in(const SwappedTable& s, std::span<const int32_t> of, uint32_t room, BlockTable& t) {
    assert(!s.empty() && t.held == 0 && room >= s.tokens);
    t = {};
    t.pages.resize(groups_.size());
    // Cached blocks are held first, so that they are not taken for the others.
    const uint64_t blocks = (uint64_t{room} + block_size() - 1) / block_size();
    uint64_t wanted = state_pages() + (blocks - std::min<uint64_t>(blocks, s.slots.blocks)) * windows_.size();
    for (size_t g = 0; g < windows_.size(); ++g) {
        t.pages[g].assign(s.slots.blocks, kNoBlock);
        for (size_t i = s.slots.passed[g]; i < s.slots.blocks; ++i) {
            const BlockId there = still_cached(s, of, g, i);
            if (there == kNoBlock) wanted += 1;
            else hold(g, t.pages[g][i] = there);
        }
    }
    if (wanted > pool_.free()) {
        for (size_t i = s.slots.blocks; i-- > 0;)
            for (size_t g = 0; g < windows_.size(); ++g)
                if (t.pages[g][i] != kNoBlock) let_go(g, t.pages[g][i]);
        t = {};
        return false;
    }
    pool_.eviction().expect(wanted);
    const auto move_in = [&](size_t g, BlockId slot) {
        const BlockId page = allocate(g);
        copies_.push_back({page, slot, Way::kToDevice});
        return page;
    };
    for (size_t g = 0; g < windows_.size(); ++g)
        for (size_t i = s.slots.passed[g]; i < s.slots.blocks; ++i)
            if (t.pages[g][i] == kNoBlock) t.pages[g][i] = move_in(g, s.slots.pages[g][i]);
    for (size_t g = windows_.size(); g < groups_.size(); ++g) t.pages[g].assign(1, move_in(g, s.slots.pages[g][0]));
    t.blocks = s.slots.blocks;
    t.passed = s.slots.passed;
    t.salt = s.slots.salt;
    t.held = s.slots.held;
    return grow(t, room);
}

void KvCache::drop(SwappedTable& s) {
    for (const auto& group : s.slots.pages)
        for (const BlockId slot : group) {
            if (slot == kNoBlock) continue;
            swap_.give_back(slot);
            if (zeroing_) copies_.push_back({slot, slot, Way::kZeroSlot});
        }
    s = {};
}

}  // namespace patchbay::kv
