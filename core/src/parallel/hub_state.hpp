// What the hub's two sides share: Hub for the engine's thread, HubThread for its own. All of it under the mutex.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/refusals.hpp"
#include "base/result.hpp"
#include "parallel/deadlines.hpp"
#include "parallel/peers.hpp"
#include "parallel/rank_failure.hpp"
#include "parallel/rank_store.hpp"
#include "parallel/step_trial.hpp"

namespace patchbay::parallel {

// The steps that some rank still computes, and since when.
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

struct HubState {
    HubState(uint32_t size, std::vector<Member>, const Deadlines&);

    void wake() const; // the hub's thread, which may wait for events
    Result<> post_to_ranks(MessageType, std::string_view bytes); // or the failure, if there is one
    void declare(const Failure&, RankFailure::Lasts);

    const Deadlines deadlines;
    const RealClock clock;
    std::mutex mutex;
    std::condition_variable changed;
    const Socket wakes; // readable when there is something to send
    Peers peers;
    RankStore store;
    StepsUnderWay steps;
    StepTrial trial;
    RankFailure failure;
    std::function<void()> on_failure; // ends what waits for other ranks; may be null
    bool in_session = false;
};

}  // namespace patchbay::parallel
