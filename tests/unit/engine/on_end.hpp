// An observer of steps that calls a function with each report.
#pragma once
#include <functional>

#include "engine/loop/step_observer.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine::testing {

struct OnEnd final : StepObserver {
    explicit OnEnd(std::function<void(const StepReport&)> f = {}) : call(std::move(f)) {}
    void on_end(const StepReport& report) override {
        if (call) call(report);
    }
    std::function<void(const StepReport&)> call; // may be empty
};

}  // namespace patchbay::engine::testing
