// The steps that some rank still computes, and since when. Part of HubState.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "base/refusals.hpp"
#include "base/result.hpp"
#include "parallel/peers.hpp"

namespace patchbay::parallel {

class StepsUnderWay {
  public:
    uint64_t next() { return ++latest_; } // the number of a step that is about to be sent
    void sent(uint64_t number, uint64_t now) { starts_[number] = now; }
    // A rank has finished it, be it by a fault, and with it those before.
    Result<> finished(Peer& p, uint64_t number, const Peers& peers) {
        if (number > latest_) return invalid("has done a step that is still to come");
        p.last_step = number;
        uint64_t done = latest_;
        for (const auto& other : peers.all())
            if (other->joined) done = std::min(done, other->last_step);
        starts_.erase(starts_.begin(), starts_.upper_bound(done));
        return {};
    }
    bool any() const { return !starts_.empty(); }
    void clear() { starts_.clear(); }

    // Since when the rank computes the oldest step; none: it has finished that one.
    std::optional<uint64_t> since(const Peer& p) const {
        if (starts_.empty() || p.last_step >= starts_.begin()->first) return std::nullopt;
        return starts_.begin()->second;
    }

  private:
    uint64_t latest_ = 0;
    std::map<uint64_t, uint64_t> starts_; // by number
};

}  // namespace patchbay::parallel
