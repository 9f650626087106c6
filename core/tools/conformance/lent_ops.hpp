// A device's ops, whose structs are overwritten when each call returns: what a device keeps a pointer to is nonsense by
// the end of the step.
#pragma once
#include "conformance/lent_memory.hpp"
#include "patchbay/abi/device.h"

namespace patchbay::conformance {

class LentOps {
  public:
    explicit LentOps(const pb_ops& real);
    LentOps(const LentOps&) = delete;
    LentOps& operator=(const LentOps&) = delete;

    const pb_ops& ops() const { return ops_; } // those that the device has
    bool intact() const { return intact_; }    // nothing was written past the end of a struct

  private:
    template <auto Op>
    static auto lending();

    const pb_ops real_;
    pb_ops ops_{};
    LentMemory memory_;
    bool intact_ = true;
};

}  // namespace patchbay::conformance
