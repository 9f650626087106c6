// The first fault of a step, after which the step's ops do nothing.
#pragma once
#include <string>
#include <utility>

#include "patchbay/plugin.hpp"

namespace patchbay {

class StepFault {
  public:
    bool faulty() const { return !text_.empty(); }
    void set_fault(std::string text) noexcept { text_ = std::move(text); }

    // As sdk/device.hpp wants them.
    void begin_step() { text_.clear(); }
    void end_step() { // throws the fault
        if (text_.empty()) return;
        const std::string text = std::exchange(text_, {});
        throw Error(PB_INVALID, text);
    }

  private:
    std::string text_;
};

}  // namespace patchbay
