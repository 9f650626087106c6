// Block tables of sequences over one pool: growing, sharing by prefix, freeing outside the window, releasing.
// Used by the engine when it applies a plan. An operation that cannot be met changes nothing.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "kv/block_pool.hpp"
#include "kv/groups.hpp"
#include "kv/prefix_watch.hpp"
#include "kv/swap_space.hpp"

namespace patchbay::kv {

struct BlockTable { // of one sequence
    // By group: a page for each block of tokens, kNoBlock for one outside the window; or the one page of the
    // state.
    std::vector<std::vector<BlockId>> pages;
    std::vector<uint32_t> passed; // by group: number of leading blocks that were freed
    uint32_t blocks = 0;          // blocks of tokens that the table has room for
    uint32_t held = 0;            // pages of all groups
    std::vector<BlockKey> keys;   // of its full, named blocks, in order; at most `blocks`
    BlockKey salt;                // only sequences with the same salt find its blocks
};

enum class Way : uint8_t {
    kWithin, kToHost, kToDevice, // from page to page; from page to slot; from slot to page
    kZeroPage, kZeroSlot         // `to` becomes zero
};

struct PageCopy { // page ids; on the host's side, slots of the swap space
    BlockId to, from;
    Way way = Way::kWithin;
    bool operator==(const PageCopy&) const = default;
};

struct SwappedTable { // of a sequence whose KV is in host memory
    BlockTable slots;    // its pages are slots
    uint32_t tokens = 0; // number of tokens whose KV they hold
    bool empty() const { return slots.held == 0; }
};

enum class PrefixCaching { kOff, kOn };

struct CacheEvent { // a change of what the prefix cache can find
    enum class Kind { kStored, kRemoved, kCleared } kind;
    BlockKey key, parent;        // kCleared: none
    bool first = false;          // the first block of a chain: it has no parent
    uint32_t group = 0;          // for kStored, like the tokens
    std::vector<int32_t> tokens;
};

class KvCache {
  public:
    // `root` identifies interchangeable KV: model, dtype, layout. With states prefixes are never cached: a state
    // belongs to its latest token, not to the last token of a block.
    KvCache(uint32_t block_count, uint32_t block_size, PrefixCaching, std::string_view root,
            std::vector<GroupSpec> groups = {GroupSpec{}}, uint32_t swap_slots = 0);
    KvCache(const KvCache&) = delete;

    const BlockPool& pool() const { return pool_; }
    void begin_walk() { pool_.eviction().pages().begin_walk(); } // over what is cached, as CachedPages'
    bool walk(size_t max_blocks, std::vector<CachedPage>& out) {
        return pool_.eviction().pages().walk(max_blocks, out);
    }
    const SwapSpace& swap_space() const { return swap_; }
    uint32_t block_size() const { return pool_.identities().block_size(); }
    bool caches_prefixes() const { return caching_ == PrefixCaching::kOn; }
    // By group of tokens: its window; 0: it keeps all tokens.
    std::span<const uint32_t> windows() const { return windows_; }
    uint32_t state_pages() const { return static_cast<uint32_t>(groups_.size() - windows_.size()); }
    uint32_t used(GroupKind kind) const { return used_[static_cast<size_t>(kind)]; } // pages

    // From now on: pages and slots that no request holds and no lookup finds any more become zero, by copies().
    void zero_freed() { zeroing_ = true; }
    void record_events() { recording_ = true; } // from now on
    std::vector<CacheEvent> take_events() { return std::exchange(events_, {}); }
    void evict_by(Evictor& evictor) { pool_.eviction().evict_by(evictor); } // before anything is cached
    void set_time(uint64_t ns) { pool_.residencies().set_time(ns); } // for pages taken and freed
    std::vector<uint64_t> take_residencies() { return pool_.residencies().take(); } // ns that pages were held

    // How much of `tokens` is cached now: a hint. It leaves at least the last token to compute. `salt`: sequences with
    // different salts do not find each other's blocks; default: none.
    CachedPrefix cached_prefix(std::span<const int32_t> tokens, const BlockKey& salt = {}) const;
    uint32_t count_cached(std::span<const int32_t> tokens, const BlockKey& salt = {}) const {
        return cached_prefix(tokens, salt).tokens;
    }
    // The same, kept current, for `tokens` that stay in place: a slot of watch(). nullopt: all slots are taken, or
    // prefixes are not cached.
    std::optional<size_t> watch_prefix(std::span<const int32_t> tokens, const BlockKey& salt = {});
    PrefixWatch& watch() { return *watch_; }
    // Gives an empty table the longest cached prefix; returns its tokens.
    uint32_t adopt_prefix(BlockTable&, std::span<const int32_t> tokens, const BlockKey& salt = {});
    void note_hits(const BlockTable&, uint32_t tokens); // a request has begun with these, which were cached

    // Shares the pages of another table's first `tokens` tokens with an empty one. False: some of them are freed, or
    // the model has states, which belong to the latest token only.
    bool can_fork(const BlockTable& from, uint32_t tokens) const;
    bool fork(const BlockTable& from, uint32_t tokens, BlockTable& to);
    // Pages that hold token `at` and that others hold too: they must be copied before a write.
    uint32_t shared_pages(const BlockTable&, uint32_t at) const;
    // Replaces them by pages of its own, which are copied first. Needs as many free pages.
    void copy_on_write(BlockTable&, uint32_t at);

    uint32_t capacity(const BlockTable& t) const { return t.blocks * block_size(); } // tokens
    // How many of n tokens after the `computed` ones fit if the table takes every free page, copies of shared ones
    // included.
    uint32_t fitting(const BlockTable&, uint32_t computed, uint32_t n) const;
    // Makes room for `tokens` in total. False: not enough free pages, nothing changed.
    bool grow(BlockTable&, uint32_t tokens);
    // Frees what no token from `computed` on sees: deeper blocks become reusable before shallower ones.
    void pass(BlockTable&, uint32_t computed);
    // Names the blocks that `tokens` (computed and confirmed) fill, so that other sequences may share them.
    void cache_full_blocks(BlockTable&, std::span<const int32_t> tokens);
    void forget(const BlockTable&); // the hashes of its blocks, whose content is unknown
    void release(BlockTable&); // deeper blocks become reusable before shallower ones
    void discard(BlockTable&); // its unnamed blocks are the next to be reused, before any that can be found
    uint32_t pages_freed_if_preempted(const BlockTable&) const; // pages that no other table holds
    // Pages that a table still needs for this many tokens, including those of states.
    uint64_t lacking(const BlockTable& t, uint64_t tokens) const { return pages_to_grow(t, tokens); }

    // Copies of pages that earlier calls need: to be made in this order, before any write to a page.
    std::span<const PageCopy> copies() const { return copies_; }
    void forget_copies() { copies_.clear(); } // when they are made

    // ---- host memory (kv_swap.cpp)
    // Moves the pages of the first `tokens` tokens to slots and frees all pages. False: not enough slots,
    // nothing changed.
    bool swap_out(BlockTable&, uint32_t tokens, SwappedTable&);
    // Gives an empty table pages for what is in the slots, which stay, and room for `room` tokens in total. Blocks that
    // can still be found by their identity are shared again and not copied; the others have no identity yet. `of`: the
    // sequence's tokens. False: not enough free pages, nothing changed.
    bool swap_in(const SwappedTable&, std::span<const int32_t> of, uint32_t room, BlockTable&);
    void drop(SwappedTable&); // frees its slots

    Result<> reset_prefixes(); // refused while blocks are in use
    void forget_prefixes();    // whatever is in use: nothing that was computed so far can be found

    // Whether these tables, all that exist, are sound and agree with the pool (audit.cpp). O(blocks).
    Result<> audit(std::span<const BlockTable* const>) const;

  private:
    struct Prefix {
        std::vector<BlockKey> keys;
        std::vector<std::vector<BlockId>> pages; // by group; kNoBlock before what the next token sees
    };
    Prefix find_prefix(std::span<const int32_t> tokens, const BlockKey& salt) const;
    BlockKey root(const BlockKey& salt) const; // of chains
    void note_removed(BlockId);
    void clear(BlockId page) { copies_.push_back({page, page, Way::kZeroPage}); }
    size_t first_seen(size_t group, uint64_t computed) const; // block
    uint64_t pages_to_grow(const BlockTable&, uint64_t tokens) const;
    BlockId still_cached(const SwappedTable&, std::span<const int32_t> of, size_t group, size_t block) const;
    BlockId allocate(size_t group);
    void hold(size_t group, BlockId);
    enum class Reuse { kLast, kFirst }; // when a page without an identity is reused: after all others, or before them
    void let_go(size_t group, BlockId, Reuse = Reuse::kLast);
    void give_back(BlockTable&, Reuse);
    uint32_t& used_by(size_t group) { return used_[static_cast<size_t>(groups_[group].kind)]; }

    BlockPool pool_;
    SwapSpace swap_;
    std::vector<PageCopy> copies_;
    std::vector<CacheEvent> events_;
    bool zeroing_ = false, recording_ = false;
    PrefixCaching caching_;
    BlockKey root_;
    std::vector<GroupSpec> groups_; // groups of tokens before groups of states
    std::vector<uint32_t> windows_;
    std::array<uint32_t, kGroupKinds> used_{};
    std::optional<PrefixWatch> watch_; // refers to pool_ and windows_
};

}  // namespace patchbay::kv
