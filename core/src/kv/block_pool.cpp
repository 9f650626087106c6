#include "kv/block_pool.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cassert>

namespace patchbay::kv {
namespace {

BlockKey key_of(XXH128_hash_t h) { return {h.high64, h.low64}; }

}  // namespace

BlockKey root_key(std::string_view what) { return key_of(XXH3_128bits(what.data(), what.size())); }

BlockKey child_key(const BlockKey& parent, std::span<const int32_t> tokens) {
    const BlockKey parts[2] = {parent, key_of(XXH3_128bits(tokens.data(), tokens.size_bytes()))};
    return key_of(XXH3_128bits(parts, sizeof parts));
}

BlockKey in_group(BlockKey key, size_t group) {
    key.low ^= group * 0x9E3779B97F4A7C15ull;
    return key;
}

BlockPool::BlockPool(uint32_t block_count, uint32_t block_size)
    : block_size_(block_size), blocks_(block_count), tokens_(size_t{block_count} * block_size) {
    for (uint32_t b = 0; b < block_count; ++b) push_back(static_cast<BlockId>(b));
}

std::vector<BlockId> BlockPool::free_list() const {
    std::vector<BlockId> out;
    for (BlockId b = first_free_; b != kNoBlock; b = blocks_[b].next) out.push_back(b);
    return out;
}

void BlockPool::unlink(BlockId b) {
    Block& block = blocks_[b];
    if (walk_next_ == b) walk_next_ = block.next;
    (block.previous == kNoBlock ? first_free_ : blocks_[block.previous].next) = block.next;
    (block.next == kNoBlock ? last_free_ : blocks_[block.next].previous) = block.previous;
    block.previous = block.next = kNoBlock;
    free_count_ -= 1;
    cached_count_ -= block.named;
}

void BlockPool::push_back(BlockId b) {
    Block& block = blocks_[b];
    block.previous = last_free_;
    (last_free_ == kNoBlock ? first_free_ : blocks_[last_free_].next) = b;
    last_free_ = b;
    if (walking_ && walk_next_ == kNoBlock) walk_next_ = b;
    free_count_ += 1;
    cached_count_ += block.named;
}

void BlockPool::push_front(BlockId b) {
    Block& block = blocks_[b];
    block.next = first_free_;
    (first_free_ == kNoBlock ? last_free_ : blocks_[first_free_].previous) = b;
    first_free_ = b;
    free_count_ += 1;
    cached_count_ += block.named;
}

void BlockPool::join_ring(BlockId b, BlockId head) {
    Block& block = blocks_[b];
    block.next_twin = head;
    block.previous_twin = blocks_[head].previous_twin;
    blocks_[block.previous_twin].next_twin = blocks_[head].previous_twin = b;
}

void BlockPool::leave_ring(BlockId b) {
    Block& block = blocks_[b];
    blocks_[block.previous_twin].next_twin = block.next_twin;
    blocks_[block.next_twin].previous_twin = block.previous_twin;
    block.previous_twin = block.next_twin = b;
}

void BlockPool::unname(BlockId b) {
    Block& block = blocks_[b];
    if (!block.named) return;
    note_change(block.key);
    if (evictor_) evictor_->removed(b);
    if (!has_twin(b)) by_key_.erase(block.key);
    else if (BlockId& head = by_key_.at(block.key); head == b) head = block.next_twin;
    leave_ring(b);
    block.named = false;
}

// Blocks in use stay at the front of the ring: a hit on one of these takes no free block.
void BlockPool::note_presence(BlockId b) {
    Block& block = blocks_[b];
    if (!block.named) return;
    note_change(block.key);
    if (!has_twin(b)) return;
    BlockId& head = by_key_.at(block.key);
    if (head == b) head = block.next_twin;
    leave_ring(b);
    join_ring(b, head);
    if (block.references > 0) head = b;
}

BlockId BlockPool::allocate() {
    const BlockId b = next();
    if (b == kNoBlock) return kNoBlock;
    if (evictor_) {
        if (expected_ > 0 && is_cached(b)) expected_ -= 1;
        if (!victims_.empty() && victims_.back() == b) victims_.pop_back(), chosen_evictions_ += 1;
    }
    unlink(b);
    evictions_ += blocks_[b].named && !has_twin(b);
    unname(b);
    blocks_[b].references = 1;
    blocks_[b].since_ns = now_ns_;
    return b;
}

void BlockPool::hold(BlockId b) {
    if (blocks_[b].references++ > 0) return;
    unlink(b);
    note_presence(b);
    if (evictor_ && blocks_[b].named) evictor_->used(b);
    blocks_[b].since_ns = now_ns_;
}

bool BlockPool::drop(BlockId b) {
    assert(blocks_[b].references > 0);
    if (--blocks_[b].references > 0) return false;
    note_presence(b);
    if (timing_) residencies_.push_back(now_ns_ - std::min(now_ns_, blocks_[b].since_ns));
    return true;
}

void BlockPool::release(BlockId b) {
    if (drop(b)) evictor_ ? give_to_evictor(b) : push_back(b);
}

void BlockPool::discard(BlockId b) {
    const size_t noted = residencies_.size();
    if (!drop(b)) return;
    if (blocks_[b].since_ns == now_ns_) residencies_.resize(noted); // it was held for a step only
    if (evictor_) return give_to_evictor(b);
    blocks_[b].named ? push_back(b) : push_front(b);
}

// Empty blocks go in front of all cached ones.
void BlockPool::give_to_evictor(BlockId b) {
    if (!blocks_[b].named) return push_front(b);
    push_back(b);
    details_[static_cast<size_t>(b)].released_ns = now_ns_;
    evictor_->cached(cached_page(b));
}

std::optional<BlockId> BlockPool::find(const BlockKey& key, const BlockKey& parent,
                                       std::span<const int32_t> tokens) const {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return std::nullopt;
    const BlockId b = at->second;
    const auto stored = tokens_.begin() + static_cast<ptrdiff_t>(size_t(b) * block_size_);
    if (!(blocks_[b].parent == parent) || !std::equal(tokens.begin(), tokens.end(), stored)) return std::nullopt;
    return b;
}

bool BlockPool::name(BlockId b, const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens,
                     Place place) {
    assert(blocks_[b].references > 0 && tokens.size() == block_size_);
    Block& block = blocks_[b];
    if (block.named) return false;
    if (evictor_) {
        if (by_key_.contains(key)) return false;
        details_[static_cast<size_t>(b)] = {.place = place};
    }
    const auto [at, is_new] = by_key_.emplace(key, b);
    block.named = true;
    block.key = key;
    block.parent = parent;
    block.previous_twin = block.next_twin = b;
    std::copy(tokens.begin(), tokens.end(), tokens_.begin() + static_cast<ptrdiff_t>(size_t(b) * block_size_));
    note_change(key);
    if (is_new) return true;
    if (blocks_[at->second].references > 0) join_ring(b, blocks_[at->second].next_twin);
    else join_ring(b, at->second), at->second = b;
    return false;
}

Presence BlockPool::presence(const BlockKey& key) const {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return Presence::kAbsent;
    return blocks_[at->second].references > 0 ? Presence::kInUse : Presence::kFree;
}

void BlockPool::note_changes(bool on) {
    noting_ = on;
    if (!on) changes_ = {};
}

void BlockPool::forget(BlockId b) {
    assert(blocks_[b].references > 0);
    unname(b);
}

void BlockPool::forget_all() {
    for (const auto& [key, first] : by_key_) {
        note_change(key);
        if (evictor_) evictor_->removed(first);
    }
    for (Block& block : blocks_) block.named = false;
    by_key_.clear();
    cached_count_ = 0;
}

// ---- the evictor -----------------------------------------------------------------------------

void BlockPool::evict_by(Evictor& evictor) {
    assert(by_key_.empty());
    evictor_ = &evictor;
    details_.resize(blocks_.size());
}

void BlockPool::note_hit(BlockId b) {
    if (evictor_) details_[static_cast<size_t>(b)].hits += 1;
}

CachedPage BlockPool::cached_page(BlockId b) const {
    const Block& block = blocks_[b];
    const Details& details = details_[static_cast<size_t>(b)];
    const auto parent = by_key_.find(block.parent);
    return {.page = b,
            .parent = parent == by_key_.end() ? kNoBlock : parent->second,
            .block = block.key.low,
            .released_ns = details.released_ns,
            .position = details.place.position,
            .group = details.place.group,
            .hits = details.hits};
}

std::vector<CachedPage> BlockPool::cached_pages() const {
    std::vector<CachedPage> out;
    for (BlockId b = first_free_; b != kNoBlock; b = blocks_[b].next)
        if (evictor_ && blocks_[b].named) out.push_back(cached_page(b));
    return out;
}

void BlockPool::begin_walk() {
    walking_ = true;
    walk_next_ = first_free_;
}

bool BlockPool::walk(size_t max_blocks, std::vector<CachedPage>& out) {
    for (; max_blocks > 0 && walk_next_ != kNoBlock; --max_blocks) {
        const BlockId b = walk_next_;
        walk_next_ = blocks_[b].next;
        if (blocks_[b].named) out.push_back(cached_page(b));
    }
    walking_ = walk_next_ != kNoBlock;
    return walking_;
}

void BlockPool::choose_victims(uint64_t allocations) {
    const uint64_t empty = free_count_ - cached_count_;
    victims_.clear();
    expected_ = 0;
    if (allocations <= empty) return;
    expected_ = std::min<uint64_t>(allocations - empty, cached_count_);
    victims_.resize(expected_);
    victims_.resize(std::min(evictor_->choose(victims_), victims_.size()));
    std::ranges::reverse(victims_);
}

BlockId BlockPool::next_of_evictor() {
    const bool evicts = first_free_ != kNoBlock && blocks_[first_free_].named;
    return evicts ? victim() : first_free_;
}

// The evictor's choice, as long as it is one; else the block unused the longest.
BlockId BlockPool::victim() {
    if (expected_ == 0) choose_victims(1);
    for (; !victims_.empty(); victims_.pop_back()) {
        const BlockId b = victims_.back();
        if (b >= 0 && static_cast<size_t>(b) < blocks_.size() && is_cached(b)) return b;
        evictor_->refused(b);
    }
    return first_free_;
}

}  // namespace patchbay::kv
