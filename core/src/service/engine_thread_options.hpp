// The settings of an EngineThread, and who hears of its requests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "engine/request/request.hpp"

namespace patchbay::service {

struct EngineThreadOptions {
    size_t max_inbox = 4096;        // requests that wait for the step under way to end; more are refused as exhausted
    size_t max_queued_deltas = 64;  // of one stream, see Stream
    uint32_t max_hang_s = 0;        // a plugin's call that goes on for so long aborts the process in it; 0: none does
    // Called on the loop's thread. What steps do is seen by Engine::observe().
    std::function<void(engine::RequestId, const engine::Request&)> on_request; // accepted
    std::function<void(const engine::RequestOutput&)> on_output;
};

}  // namespace patchbay::service
