// A running engine as threads other than its loop's see it: its status, calls between two steps, swaps. Live control
// works on this, whichever loop steps the engine.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "engine/swap/swap_request.hpp"
#include "host/swap.hpp"

namespace patchbay::service {

enum class ServiceState { kRunning, kDraining, kStopped, kFailed };
std::string_view name_of(ServiceState); // "running", "draining", "stopped", "failed"

struct ServiceStatus {
    ServiceState state = ServiceState::kRunning;
    std::string reason;       // of kFailed
    uint64_t steps = 0;
    size_t inbox = 0;         // requests that the engine has not seen yet
    size_t unfinished = 0;    // requests that the engine has
    engine::StepReport last;  // of the last step

    bool has_ended() const { return state == ServiceState::kStopped || state == ServiceState::kFailed; }
};

// All functions: any thread but the loop's.
class LiveEngine {
  public:
    virtual ~LiveEngine() = default;

    virtual ServiceStatus status() const = 0;
    // Calls f on the loop's thread between two steps and returns after it. False: the loop has ended, f was not called.
    virtual bool call(const std::function<void(engine::Engine&)>& f) = 0;
    // As EngineControl::swap_together; waits for the probes and the constructions, not for the boundary.
    virtual std::vector<std::shared_ptr<host::Swap>> swap_together(std::vector<engine::SwapRequest>) = 0;
};

}  // namespace patchbay::service
