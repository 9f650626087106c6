// What each phase of a step took, for its report: a phase begins when the one before it ended.
#pragma once
#include <type_traits>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

class PhaseTimer {
  public:
    PhaseTimer(Clock& clock, StepContext& context) : clock_(clock), context_(context) {}

    template <class F> // returns nothing, or a Result<>
    Result<> run(Phase phase, F&& f) const {
        Result<> done;
        if constexpr (std::is_void_v<decltype(f())>) f();
        else done = f();
        const uint64_t now = clock_.now_ns();
        context_.report.phase_ns[static_cast<size_t>(phase)] += now - std::exchange(context_.now_ns, now);
        return done;
    }

  private:
    Clock& clock_;
    StepContext& context_;
};

}  // namespace patchbay::engine
