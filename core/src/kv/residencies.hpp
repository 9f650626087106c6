// How long blocks were held, for the engine's statistics. Used by BlockPool.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kv/block_id.hpp"

namespace patchbay::kv {

class Residencies {
  public:
    explicit Residencies(uint32_t block_count) : since_ns_(block_count, 0) {}

    // The time at which blocks are taken and freed. From the first call on, records how long each was held.
    void set_time(uint64_t ns) {
        now_ns_ = ns;
        recording_ = true;
    }
    uint64_t now_ns() const { return now_ns_; }
    std::vector<uint64_t> take() { return std::exchange(ended_, {}); } // ns, since the last call

    void begin(BlockId b) { since_ns_[static_cast<size_t>(b)] = now_ns_; }
    void end(BlockId b) {
        if (recording_) ended_.push_back(now_ns_ - std::min(now_ns_, since_ns_[static_cast<size_t>(b)]));
    }
    bool begun_now(BlockId b) const { return since_ns_[static_cast<size_t>(b)] == now_ns_; }

  private:
    std::vector<uint64_t> since_ns_; // by block: when it was taken
    uint64_t now_ns_ = 0;
    bool recording_ = false;
    std::vector<uint64_t> ended_;
};

}  // namespace patchbay::kv
