// How much of the waiting prompts is cached now. Each is looked up once; after that only blocks that are cached,
// evicted, taken or freed cost anything. Used by the engine for the scheduler's view of waiting sequences.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/block_pool.hpp"
#include "kv/cached_prefix.hpp"

namespace patchbay::kv {

class PrefixWatch {
  public:
    static constexpr size_t kMaxPrompts = 128;
    using Prompts = std::bitset<kMaxPrompts>; // by slot

    PrefixWatch(BlockPool& pool, std::span<const uint32_t> windows) : pool_(pool), windows_(windows) {}
    PrefixWatch(const PrefixWatch&) = delete;

    // `tokens` stay in place until remove(); `root`: of the chain. Returns its slot; nullopt: all slots are taken.
    std::optional<size_t> add(std::span<const int32_t> tokens, const BlockKey& root);
    void remove(size_t slot);
    size_t count() const { return taken_.count(); }
    // Applies the changes since the last call; returns the prompts whose prefix changed.
    Prompts update();
    const CachedPrefix& prefix(size_t slot) const { return prompts_[slot].prefix; } // as of add() or update()

  private:
    struct Page { // of an identity
        Presence presence = Presence::kAbsent;
        Prompts prompts; // whose chains contain it
    };
    struct Prompt {
        std::span<const int32_t> tokens;
        BlockKey root;
        std::vector<BlockKey> keys; // of its blocks, as far as the chain is cached and one more
        std::vector<Page*> pages;   // (keys, groups)
        CachedPrefix prefix;
    };
    void lengthen(size_t slot);
    CachedPrefix measure(size_t slot);

    BlockPool& pool_;
    std::span<const uint32_t> windows_;
    std::unordered_map<BlockKey, Page, BlockKeyHash> pages_;
    std::array<Prompt, kMaxPrompts> prompts_;
    Prompts taken_;
};

}  // namespace patchbay::kv
