#include "service/live_engine.hpp"

namespace patchbay::service {

std::string_view name_of(ServiceState state) {
    switch (state) {
        case ServiceState::kRunning:
            return "running";
        case ServiceState::kDraining:
            return "draining";
        case ServiceState::kStopped:
            return "stopped";
        case ServiceState::kFailed:
            return "failed";
    }
    return "";
}

}  // namespace patchbay::service
