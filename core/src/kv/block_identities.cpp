#include "kv/block_identities.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "base/refusals.hpp"

namespace patchbay::kv {

BlockIdentities::BlockIdentities(uint32_t block_count, uint32_t block_size)
    : block_size_(block_size), blocks_(block_count), tokens_(size_t{block_count} * block_size),
      rings_(block_count) {}

BlockId BlockIdentities::parent_of(BlockId b) const {
    const auto parent = by_key_.find(at(b).parent);
    return parent == by_key_.end() ? kNoBlock : parent->second;
}

Presence BlockIdentities::presence(const BlockKey& key) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return Presence::kAbsent;
    return at(found->second).in_use ? Presence::kInUse : Presence::kFree;
}

std::optional<BlockId> BlockIdentities::find(const BlockKey& key, const BlockKey& parent,
                                             std::span<const int32_t> tokens) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return std::nullopt;
    const BlockId b = found->second;
    const auto stored = tokens_.begin() + static_cast<ptrdiff_t>(size_t(b) * block_size_);
    if (!(at(b).parent == parent) || !std::equal(tokens.begin(), tokens.end(), stored)) return std::nullopt;
    return b;
}

bool BlockIdentities::give(BlockId b, const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens) {
    assert(!has(b) && tokens.size() == block_size_);
    const auto [first, is_new] = by_key_.emplace(key, b);
    at(b) = {.named = true, .in_use = true, .key = key, .parent = parent};
    std::copy(tokens.begin(), tokens.end(), tokens_.begin() + static_cast<ptrdiff_t>(size_t(b) * block_size_));
    changes_.note(key);
    if (is_new) return true;
    if (at(first->second).in_use) rings_.join(b, rings_.next(first->second));
    else rings_.join(b, first->second), first->second = b;
    return false;
}

void BlockIdentities::clear(BlockId b) {
    Block& block = at(b);
    if (!block.named) return;
    changes_.note(block.key);
    if (!has_twin(b)) by_key_.erase(block.key);
    else if (BlockId& head = by_key_.at(block.key); head == b) head = rings_.next(b);
    rings_.leave(b);
    cached_count_ -= !block.in_use;
    block.named = false;
}

std::vector<BlockId> BlockIdentities::clear_all() {
    std::vector<BlockId> out;
    for (const auto& [key, first] : by_key_) {
        changes_.note(key);
        out.push_back(first);
    }
    for (Block& block : blocks_) block.named = false;
    rings_.clear();
    by_key_.clear();
    cached_count_ = 0;
    return out;
}

// Blocks in use stay at the front of the ring: a hit on one of these takes no free block.
void BlockIdentities::set_in_use(BlockId b, bool in_use) {
    Block& block = at(b);
    if (!block.named) return;
    changes_.note(block.key);
    block.in_use = in_use;
    cached_count_ += in_use ? -1u : 1u;
    if (!has_twin(b)) return;
    BlockId& head = by_key_.at(block.key);
    if (head == b) head = rings_.next(b);
    rings_.leave(b);
    rings_.join(b, head);
    if (in_use) head = b;
}

Result<> BlockIdentities::audit(std::span<const uint32_t> references) const {
    const auto text = [](BlockId b) { return "block " + std::to_string(b); };
    size_t named = 0;
    uint32_t cached = 0;
    for (BlockId b = 0; static_cast<size_t>(b) < blocks_.size(); ++b) {
        if (!has(b)) continue;
        named += 1;
        cached += is_cached(b);
        if (at(b).in_use != (references[static_cast<size_t>(b)] > 0))
            return broken(text(b) + " has an identity that is wrong about whether it is in use");
        if (!by_key_.contains(at(b).key)) return broken(text(b) + " has an identity by which it is not found");
    }
    if (cached != cached_count_)
        return broken(std::to_string(cached) + " free blocks are cached, and " + std::to_string(cached_count_) +
                      " are counted");
    size_t found = 0;
    for (const auto& [key, first] : by_key_) {
        bool all_in_use = true; // of the blocks so far
        BlockId b = first;
        do {
            const Block& twin = at(b);
            if (!twin.named || !(twin.key == key) || ++found > named)
                return broken(text(b) + " is found by an identity that it does not have");
            if (twin.in_use && !all_in_use)
                return broken(text(b) + " is in use, after a free block of the same identity");
            all_in_use = twin.in_use;
            b = rings_.next(b);
        } while (b != first);
    }
    if (found != named)
        return broken(std::to_string(found) + " blocks are found by their identity, of " + std::to_string(named));
    return {};
}

}  // namespace patchbay::kv
