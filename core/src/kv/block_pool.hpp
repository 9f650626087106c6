// KV blocks: which are held, which are free, and what full ones contain. Holds no KV bytes, only their bookkeeping.
// Used by KvCache. Every operation is O(1) in the number of blocks.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "kv/evictor.hpp"

namespace patchbay::kv {

inline constexpr BlockId kNoBlock = -1;

// Identity of a full block: a hash of its parent's identity, its tokens and extra keys (adapter, salt, …).
struct BlockKey {
    uint64_t high = 0, low = 0;
    bool operator==(const BlockKey&) const = default;
};

BlockKey root_key(std::string_view what); // from model, dtype and layout: a swap that changes KV changes all keys
BlockKey child_key(const BlockKey& parent, std::span<const int32_t> tokens);
BlockKey in_group(BlockKey, size_t group); // blocks of the same tokens have one page in each group

struct BlockKeyHash {
    size_t operator()(const BlockKey& k) const { return k.low; }
};

enum class Presence : uint8_t { kAbsent, kFree, kInUse }; // of an identity: no block, free blocks only, or a held one

class BlockPool {
  public:
    BlockPool(uint32_t block_count, uint32_t block_size);

    uint32_t total() const { return static_cast<uint32_t>(blocks_.size()); }
    uint32_t free() const { return free_count_; }     // including cached ones
    uint32_t used() const { return total() - free_count_; }
    uint32_t cached() const { return cached_count_; } // free blocks that still have an identity
    uint64_t evictions() const { return evictions_; }
    uint32_t block_size() const { return block_size_; }
    uint32_t references(BlockId b) const { return blocks_[b].references; }
    const BlockKey* key_of(BlockId b) const { return blocks_[b].named ? &blocks_[b].key : nullptr; } // null: none
    bool has_twin(BlockId b) const { return blocks_[b].named && blocks_[b].next_twin != b; } // of the same identity
    Presence presence(const BlockKey&) const;
    // The next result of allocate(), if nothing else comes between; kNoBlock: none.
    BlockId next() { return evictor_ ? next_of_evictor() : first_free_; }

    // In the order in which allocate() takes them, if there is no evictor. O(free)
    std::vector<BlockId> free_list() const;

    // From now on, before anything is cached: it chooses which cached block is evicted; blocks without identity go
    // first, and of equal blocks only one has an identity. It outlives the pool's last call.
    void evict_by(Evictor&);
    // So many calls of allocate() come next: the evictor chooses for all of them at once.
    void expect(uint64_t allocations) {
        if (evictor_) choose_victims(allocations);
    }
    uint64_t chosen_evictions() const { return chosen_evictions_; } // by the evictor
    void note_hit(BlockId); // a request has found it by its identity
    std::vector<CachedPage> cached_pages() const; // the one unused the longest first. O(free)
    // The same in portions, between which blocks come and go: what is freed meanwhile comes last. walk() looks at so
    // many free blocks; false: it has come to the end. One walk at a time.
    void begin_walk();
    bool walk(size_t max_blocks, std::vector<CachedPage>& out);

    // The time at which blocks are taken and freed. From the first call on, records how long each was held, until
    // take_residencies().
    void set_time(uint64_t ns) {
        now_ns_ = ns;
        timing_ = true;
    }
    std::vector<uint64_t> take_residencies() { return std::exchange(residencies_, {}); } // ns

    BlockId allocate();     // the free block unused the longest; its identity is cleared. kNoBlock: none left
    void hold(BlockId);     // one more reference; takes a free block out of the free list
    void release(BlockId);  // one reference less; the last one makes it the last to be reused
    void discard(BlockId);  // the same, but a block without identity becomes the first to be reused

    // A block with exactly these tokens after that parent: compared in full, not only by hash. Of several, the first
    // named one in use, since it costs no free block.
    std::optional<BlockId> find(const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens) const;
    // Gives this identity to a held block without one. True: no other block has it, so it becomes findable now.
    // With an evictor, a block whose identity another has stays without.
    struct Place { // for the evictor
        uint32_t position = 0; // of its first token in the sequence
        uint32_t group = 0;
    };
    bool name(BlockId, const BlockKey& key, const BlockKey& parent, std::span<const int32_t> tokens, Place = {0, 0});
    void forget(BlockId);   // clears the identity of a held block, before it is written to
    void forget_all();      // clears every identity

    // From the first note_changes() on: identities whose presence may have changed since take_changes(), with repeats.
    void note_changes(bool on);
    std::vector<BlockKey> take_changes() { return std::exchange(changes_, {}); }

    // Whether the pool is consistent with these numbers of references, by block (audit.cpp). O(blocks).
    Result<> audit(std::span<const uint32_t> references) const;

  private:
    struct Block {
        uint32_t references = 0;
        uint64_t since_ns = 0; // when it was taken
        BlockId previous = kNoBlock, next = kNoBlock; // in the free list
        BlockId previous_twin = kNoBlock, next_twin = kNoBlock; // ring of the same identity, those in use first
        bool named = false;
        BlockKey key, parent;
    };
    void unlink(BlockId);
    void push_back(BlockId);
    void push_front(BlockId);
    bool drop(BlockId); // removes a reference; true: it was the last
    void unname(BlockId);
    void give_to_evictor(BlockId); // that came free
    bool is_cached(BlockId b) const { return blocks_[b].named && blocks_[b].references == 0; }
    CachedPage cached_page(BlockId) const;
    void choose_victims(uint64_t allocations);
    BlockId next_of_evictor();
    BlockId victim();
    void join_ring(BlockId, BlockId head); // as its last block
    void leave_ring(BlockId);
    void note_presence(BlockId); // after a named block was taken or freed
    void note_change(const BlockKey& key) {
        if (noting_) changes_.push_back(key);
    }

    uint32_t block_size_;
    std::vector<Block> blocks_;
    std::vector<int32_t> tokens_; // (blocks, block_size) of named blocks
    std::unordered_map<BlockKey, BlockId, BlockKeyHash> by_key_; // the first block of each ring
    BlockId first_free_ = kNoBlock, last_free_ = kNoBlock;
    bool walking_ = false;
    BlockId walk_next_ = kNoBlock; // kNoBlock: what is freed next
    uint32_t free_count_ = 0, cached_count_ = 0;
    uint64_t evictions_ = 0, now_ns_ = 0;
    bool timing_ = false, noting_ = false;
    std::vector<uint64_t> residencies_;
    std::vector<BlockKey> changes_;

    struct Details { // by block, for the evictor
        Place place;
        uint32_t hits = 0;
        uint64_t released_ns = 0; // by its last sequence
    };
    Evictor* evictor_ = nullptr; // null: the one unused the longest is evicted
    std::vector<Details> details_;
    std::vector<BlockId> victims_; // chosen and not yet evicted, the next one last
    uint64_t expected_ = 0;       // evictions to come for which it was asked
    uint64_t chosen_evictions_ = 0;
};

}  // namespace patchbay::kv
