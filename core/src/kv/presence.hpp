// Whether an identity has blocks, and notes of the identities for which that may have changed. Kept by BlockIdentities,
// read by PrefixWatch.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "kv/block_key.hpp"

namespace patchbay::kv {

enum class Presence : uint8_t { kAbsent, kFree, kInUse }; // of an identity: no block, free blocks only, or a held one

class PresenceChanges {
  public:
    void record(bool on) {
        recording_ = on;
        if (!on) keys_ = {};
    }
    void note(const BlockKey& key) {
        if (recording_) keys_.push_back(key);
    }
    std::vector<BlockKey> take() { return std::exchange(keys_, {}); } // since the last call, with repeats

  private:
    bool recording_ = false;
    std::vector<BlockKey> keys_;
};

}  // namespace patchbay::kv
