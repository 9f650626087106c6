#include "kv/eviction_order.hpp"

#include <algorithm>
#include <cassert>

namespace patchbay::kv {

void EvictionOrder::evict_by(Evictor& evictor) {
    assert(identities_.empty());
    evictor_ = &evictor;
    pages_.keep(identities_.block_count());
}

void EvictionOrder::note_taken(BlockId b) {
    if (evictor_) {
        if (expected_ > 0 && identities_.is_cached(b)) expected_ -= 1;
        if (!victims_.empty() && victims_.back() == b) victims_.pop_back(), chosen_evictions_ += 1;
    }
    evictions_ += identities_.has(b) && !identities_.has_twin(b);
}

void EvictionOrder::note_cached(BlockId b, uint64_t now_ns) {
    if (!evictor_) return;
    pages_.note_released(b, now_ns);
    evictor_->cached(pages_.page(b));
}

void EvictionOrder::note_used(BlockId b) {
    if (evictor_) evictor_->used(b);
}

void EvictionOrder::note_removed(BlockId b) {
    if (evictor_) evictor_->removed(b);
}

void EvictionOrder::choose_victims(uint64_t allocations) {
    const uint64_t empty = free_.count() - identities_.cached();
    victims_.clear();
    expected_ = 0;
    if (allocations <= empty) return;
    expected_ = std::min<uint64_t>(allocations - empty, identities_.cached());
    victims_.resize(expected_);
    victims_.resize(std::min(evictor_->choose(victims_), victims_.size()));
    std::ranges::reverse(victims_);
}

BlockId EvictionOrder::next_of_evictor() {
    const bool evicts = free_.first() != kNoBlock && identities_.has(free_.first());
    return evicts ? victim() : free_.first();
}

// The evictor's choice, as long as it is one; else the block unused the longest.
BlockId EvictionOrder::victim() {
    if (expected_ == 0) choose_victims(1);
    for (; !victims_.empty(); victims_.pop_back()) {
        const BlockId b = victims_.back();
        if (b >= 0 && static_cast<uint32_t>(b) < identities_.block_count() && identities_.is_cached(b)) return b;
        evictor_->refused(b);
    }
    return free_.first();
}

}  // namespace patchbay::kv
