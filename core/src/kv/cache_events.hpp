// Events for a listener: which blocks the prefix cache can find, and which it cannot find any more.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kv/block_key.hpp"

namespace patchbay::kv {

struct CacheEvent { // a change of what the prefix cache can find
    enum class Kind { kStored, kRemoved, kCleared } kind;
    BlockKey key, parent;        // kCleared: none
    bool first = false;          // the first block of a chain: it has no parent
    uint32_t group = 0;          // for kStored, like the tokens
    std::vector<int32_t> tokens;
};

class CacheEvents {
  public:
    void record() { recording_ = true; } // from now on
    std::vector<CacheEvent> take() { return std::exchange(events_, {}); } // since the last call

    void stored(const BlockKey& key, const BlockKey& parent, bool first, uint32_t group,
                std::span<const int32_t> tokens) {
        if (!recording_) return;
        events_.push_back({CacheEvent::Kind::kStored, key, parent, first, group, {tokens.begin(), tokens.end()}});
    }
    void removed(const BlockKey& key) {
        if (recording_) events_.push_back({.kind = CacheEvent::Kind::kRemoved, .key = key, .parent = {}, .tokens = {}});
    }
    void cleared() {
        if (recording_) events_.push_back({.kind = CacheEvent::Kind::kCleared, .key = {}, .parent = {}, .tokens = {}});
    }

  private:
    std::vector<CacheEvent> events_;
    bool recording_ = false;
};

}  // namespace patchbay::kv
