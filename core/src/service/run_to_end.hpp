// The loop of what has its requests beforehand and the thread to itself: experiments, benches, scenarios, `generate`.
// What takes requests while it runs uses EngineThread.
#pragma once
#include <functional>

#include "base/result.hpp"
#include "engine/step_report.hpp"
#include "engine/stepping.hpp"

namespace patchbay::service {

struct RunHooks { // any may be empty
    // Before each step; may add and abort requests. False: the run ends here.
    std::function<bool()> go_on;
    std::function<void(engine::StepReport&)> on_step;
};

// Steps an engine until go_on ends it. Fails as its step fails.
inline Result<> run_steps(engine::SteppingEngine& engine, const RunHooks& hooks) {
    while (!hooks.go_on || hooks.go_on()) {
        PB_TRY(engine::StepReport report, engine.step());
        if (hooks.on_step) hooks.on_step(report);
    }
    return {};
}

// The same, until nothing is unfinished.
inline Result<> run_to_end(engine::SteppingEngine& engine, const RunHooks& hooks) {
    const auto go_on = [&] { return (!hooks.go_on || hooks.go_on()) && engine.has_unfinished(); };
    return run_steps(engine, {go_on, hooks.on_step});
}

}  // namespace patchbay::service
