// The loop that steps an engine and, between two steps, does what other threads have left in its inbox. Used by
// EngineThread, whose thread runs it.
#pragma once
#include <memory>

#include "service/engine_thread_options.hpp"
#include "service/loop_state.hpp"
#include "service/running_streams.hpp"

namespace patchbay::service {

class EngineLoop { // the loop's thread only
  public:
    EngineLoop(const EngineThreadOptions&, LoopState&); // which outlive it
    void run(); // until it is stopped; a loop whose engine has failed steps no more
    void abort(const std::shared_ptr<Stream>&); // in a task

  private:
    engine::SteppingEngine& engine() { return *state_.engines.current(); }
    bool take_inbox(); // waits until there is something to do, a second at most; false: the loop is to end
    void step();
    void take_over(); // if another engine is to, and this one has nothing left
    void fail_all(const Failure& why); // all streams, and what is in the inbox

    const EngineThreadOptions& options_;
    LoopState& state_;
    RunningStreams streams_;
    bool pass_boundary_ = false; // this turn steps, though there may be nothing to compute
};

}  // namespace patchbay::service
