// Finds the KV of a sequence's leading tokens among the pages that earlier ones have computed. Full blocks are cached
// by their identity; a lookup follows the chain of blocks from the first one. Used by the engine.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "kv/block_table.hpp"
#include "kv/cache_events.hpp"
#include "kv/group_pages.hpp"
#include "kv/prefix_watch.hpp"
#include "kv/table_shape.hpp"

namespace patchbay::kv {

enum class PrefixCaching { kOff, kOn };

class PrefixCache {
  public:
    // `root` identifies interchangeable KV: model, dtype, layout. With states prefixes are never cached: a state
    // belongs to its latest token, not to the last token of a block.
    PrefixCache(PrefixCaching, std::string_view root, const TableShape&, GroupPages&, CacheEvents&);
    bool enabled() const { return caching_ == PrefixCaching::kOn; }

    // How much of `tokens` is cached now: a hint. It leaves at least the last token to compute. `salt`: sequences with
    // different salts do not find each other's blocks; default: none.
    CachedPrefix cached(std::span<const int32_t> tokens, const BlockKey& salt = {}) const;
    uint32_t count_cached(std::span<const int32_t> tokens, const BlockKey& salt = {}) const {
        return cached(tokens, salt).tokens;
    }
    // The same, kept current, for `tokens` that stay in place: a slot of watched(). nullopt: all slots are taken, or
    // prefixes are not cached.
    std::optional<size_t> watch(std::span<const int32_t> tokens, const BlockKey& salt = {});
    PrefixWatch& watched() { return watch_; }
    // Gives an empty table the longest cached prefix; returns its tokens.
    uint32_t adopt(BlockTable&, std::span<const int32_t> tokens, const BlockKey& salt = {});
    void note_hits(const BlockTable&, uint32_t tokens); // a request has begun with these, which were cached

    // Names the blocks that `tokens` (computed and confirmed) fill, so that other sequences may share them.
    void cache_full_blocks(BlockTable&, std::span<const int32_t> tokens);
    void forget(const BlockTable&); // the hashes of its blocks, whose content is unknown
    // The page of a block that this table has named, if it can still be found; else kNoBlock. `of`: the sequence's
    // tokens.
    BlockId page_of(const BlockTable&, size_t block, size_t group, std::span<const int32_t> of) const;

    Result<> reset();  // refused while blocks are in use
    // Whatever is in use: nothing that was computed so far can be found, and from now on `root` identifies KV. No
    // prompt may be watched.
    void start_over(std::string_view root);

  private:
    struct Prefix {
        std::vector<BlockKey> keys;
        std::vector<std::vector<BlockId>> pages; // by group; kNoBlock before what the next token sees
    };
    Prefix find(std::span<const int32_t> tokens, const BlockKey& salt) const;
    BlockKey root(const BlockKey& salt) const; // of chains

    PrefixCaching caching_;
    BlockKey root_;
    const TableShape& shape_;
    GroupPages& pages_;
    CacheEvents& events_;
    PrefixWatch watch_;
};

}  // namespace patchbay::kv
