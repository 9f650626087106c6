// What the loop of an EngineThread and the threads that use it share. Used by both.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

#include "service/engine_replacement.hpp"
#include "service/inbox.hpp"
#include "service/live_engine.hpp"

namespace patchbay::service {

struct LoopState { // all under the mutex
    LoopState(EngineReplacement::Engine engine, size_t max_inbox)
        : engines(std::move(engine)), inbox(max_inbox) {}

    std::mutex mutex;
    std::condition_variable wake;    // for the loop
    std::condition_variable changed; // for those who wait on the state
    EngineReplacement engines;       // while one is pending, arrivals wait for it
    Inbox inbox;
    ServiceStatus status; // without inbox, which is counted when it is read
};

}  // namespace patchbay::service
