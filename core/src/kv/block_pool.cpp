#include "kv/block_pool.hpp"

#include <cassert>
#include <string>

#include "base/refusals.hpp"

namespace patchbay::kv {

BlockPool::BlockPool(uint32_t block_count, uint32_t block_size)
    : references_(block_count, 0), identities_(block_count, block_size), free_(block_count),
      eviction_(free_, identities_), residencies_(block_count) {}

BlockId BlockPool::allocate() {
    const BlockId b = eviction_.next();
    if (b == kNoBlock) return kNoBlock;
    eviction_.note_taken(b);
    free_.remove(b);
    clear_identity(b);
    references_[static_cast<size_t>(b)] = 1;
    residencies_.begin(b);
    return b;
}

void BlockPool::hold(BlockId b) {
    if (references_[static_cast<size_t>(b)]++ > 0) return;
    free_.remove(b);
    identities_.set_in_use(b, true);
    if (identities_.has(b)) eviction_.note_used(b);
    residencies_.begin(b);
}

bool BlockPool::drop(BlockId b) {
    assert(references(b) > 0);
    if (--references_[static_cast<size_t>(b)] > 0) return false;
    identities_.set_in_use(b, false);
    return true;
}

void BlockPool::release(BlockId b) {
    if (!drop(b)) return;
    residencies_.end(b);
    // Where an evictor chooses, empty blocks are in front of all cached ones.
    if (eviction_.has_evictor() && !identities_.has(b)) return free_.push_front(b);
    free_.push_back(b);
    if (identities_.has(b)) eviction_.note_cached(b, residencies_.now_ns());
}

void BlockPool::discard(BlockId b) {
    if (!drop(b)) return;
    if (!residencies_.begun_now(b)) residencies_.end(b); // else it was held for a step only
    if (!identities_.has(b)) return free_.push_front(b);
    free_.push_back(b);
    eviction_.note_cached(b, residencies_.now_ns());
}

bool BlockPool::name(BlockId b, const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens,
                     BlockPlace place) {
    assert(references(b) > 0);
    if (identities_.has(b)) return false;
    if (eviction_.has_evictor() && identities_.presence(key) != Presence::kAbsent) return false;
    eviction_.pages().note_named(b, place);
    return identities_.give(b, key, parent, tokens);
}

void BlockPool::clear_identity(BlockId b) {
    if (!identities_.has(b)) return;
    identities_.clear(b);
    eviction_.note_removed(b);
}

void BlockPool::forget(BlockId b) {
    assert(references(b) > 0);
    clear_identity(b);
}

void BlockPool::forget_all() {
    for (const BlockId b : identities_.clear_all()) eviction_.note_removed(b);
}

Result<> BlockPool::audit(std::span<const uint32_t> references) const {
    for (size_t b = 0; b < references_.size(); ++b)
        if (references_[b] != references[b])
            return broken("block " + std::to_string(b) + " counts " + std::to_string(references_[b]) +
                          " references, and " + std::to_string(references[b]) + " tables hold it");
    PB_CHECK(free_.audit(references));
    return identities_.audit(references);
}

}  // namespace patchbay::kv
