// The loop of what has its requests beforehand and the thread to itself: experiments, benches, `generate`. What takes
// requests while it runs uses EngineThread.
#pragma once
#include <functional>

#include "base/result.hpp"
#include "engine/step_report.hpp"

namespace patchbay::service {

struct RunHooks { // any may be empty
    // Before each step; may add and abort requests. False: the run ends here.
    std::function<bool()> go_on;
    std::function<void(engine::StepReport&)> on_step;
};

// Steps an engine (or what a test has in its place) until nothing is unfinished. Fails as its step fails.
template <class Engine>
Result<> run_to_end(Engine& engine, const RunHooks& hooks) {
    for (;;) {
        if (hooks.go_on && !hooks.go_on()) return {};
        if (!engine.has_unfinished()) return {};
        PB_TRY(engine::StepReport report, engine.step());
        if (hooks.on_step) hooks.on_step(report);
    }
}

}  // namespace patchbay::service
