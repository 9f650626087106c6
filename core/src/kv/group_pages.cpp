#include "kv/group_pages.hpp"

namespace patchbay::kv {

void GroupPages::note_removed(BlockId page) {
    const BlockKey* const key = pool_.identities().key_of(page);
    if (key && !pool_.identities().has_twin(page)) events_.removed(*key);
}

BlockId GroupPages::allocate(size_t group) {
    used_by(group) += 1;
    const BlockId next = pool_.eviction().next();
    if (next != kNoBlock && pool_.identities().has(next)) { // its content is evicted only now
        note_removed(next);
        copies_.zero_page(next);
    }
    return pool_.allocate();
}

void GroupPages::hold(size_t group, BlockId page) {
    used_by(group) += pool_.references(page) == 0;
    pool_.hold(page);
}

void GroupPages::let_go(size_t group, BlockId page, Reuse reuse) {
    reuse == Reuse::kFirst ? pool_.discard(page) : pool_.release(page);
    if (pool_.references(page) > 0) return;
    used_by(group) -= 1;
    if (!pool_.identities().has(page)) copies_.zero_page(page);
}

void GroupPages::forget(BlockId page) {
    note_removed(page);
    pool_.forget(page);
}

void GroupPages::forget_all() {
    for (uint32_t b = 0; copies_.zeroes_freed() && b < pool_.total(); ++b)
        if (const auto page = static_cast<BlockId>(b); pool_.identities().has(page)) copies_.zero_page(page);
    pool_.forget_all();
    events_.cleared();
}

}  // namespace patchbay::kv
