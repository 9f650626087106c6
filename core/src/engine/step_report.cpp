#include "engine/step_report.hpp"

namespace patchbay::engine {

std::string_view name_of(Phase phase) {
    static constexpr std::string_view kNames[kPhaseCount] = {"admit", "plan",   "apply",  "build",
                                                             "run",   "sample", "commit", "publish"};
    return kNames[static_cast<size_t>(phase)];
}

std::string_view name_of(SwapFallback reason) {
    static constexpr std::string_view kNames[kSwapFallbacks] = {"full", "slower", "unmeasured"};
    return kNames[static_cast<size_t>(reason)];
}

}  // namespace patchbay::engine
