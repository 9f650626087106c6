// The engine that a loop steps, and another one that is to take its place. Used by EngineThread and its loop, under
// their mutex.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "engine/stepping.hpp"

namespace patchbay::service {

// One thread at a time. Only the loop's thread calls switch_over(), so it may read current() without the mutex.
class EngineReplacement {
  public:
    using Engine = std::shared_ptr<engine::SteppingEngine>;
    // Before the next engine's first step; `step`: the last one of the engine that it replaces.
    using First = std::function<void(uint64_t step)>;

    explicit EngineReplacement(Engine current) : current_(std::move(current)) {}

    const Engine& current() const { return current_; }
    bool is_pending() const { return next_ != nullptr; } // from begin() to finish() or cancel()

    void begin(Engine next, First);
    First switch_over();             // the next engine is the current one from here on
    void finish() { next_.reset(); } // First was called
    void cancel();                   // the current engine stays
    Engine release_replaced();       // null: none was replaced since the last call

  private:
    Engine current_;
    Engine next_;
    Engine replaced_; // kept until it is released, to be destroyed without a lock
    First first_;
};

}  // namespace patchbay::service
