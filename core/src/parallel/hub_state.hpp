// What the hub's two sides share: Hub for the engine's thread, HubThread for its own. All of it under the mutex.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "parallel/deadlines.hpp"
#include "parallel/peers.hpp"
#include "parallel/rank_failure.hpp"
#include "parallel/rank_store.hpp"
#include "parallel/step_trial.hpp"
#include "parallel/steps_under_way.hpp"

namespace patchbay::parallel {

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
