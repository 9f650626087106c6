// The steps after an exchange for which the predecessor is kept, so that it can come back. Used by Slot.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "host/component.hpp"
#include "host/identity.hpp"

namespace patchbay::host {

// Nothing is destroyed here: what is no longer needed is returned, for another thread to destroy.
class Probation { // [the thread that steps]
  public:
    // `next` takes the place of the current one, which becomes the predecessor.
    void replace(std::unique_ptr<Component>& current, std::unique_ptr<Component> next, Identity predecessor) {
        predecessor_ = std::exchange(current, std::move(next));
        identity_ = std::move(predecessor);
    }
    void begin(uint32_t steps) { steps_left_ = steps; }

    const Component* predecessor() const { return predecessor_.get(); } // null: none is on probation
    const Identity& identity() const { return identity_; }              // the predecessor's
    uint32_t steps_left() const { return steps_left_; }
    void count_step() { steps_left_ -= steps_left_ > 0; } // in which the current one was called and that ended well

    // The predecessor does not come back, and is returned.
    std::unique_ptr<Component> commit() { return std::move(predecessor_); }
    // It is back, and the one that had taken its place is returned.
    std::unique_ptr<Component> roll_back(std::unique_ptr<Component>& current, Identity& holder) {
        std::swap(current, predecessor_);
        std::swap(holder, identity_);
        return std::move(predecessor_);
    }

  private:
    std::unique_ptr<Component> predecessor_;
    Identity identity_;
    uint32_t steps_left_ = 0;
};

}  // namespace patchbay::host
