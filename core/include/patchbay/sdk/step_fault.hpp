// patchbay/sdk/step_fault.hpp - for devices: the first fault of a step, after which the step's ops do nothing. Its
// functions are those that checked_ops.hpp and device.hpp ask of a device.
#pragma once
#include <string>
#include <utility>

#include "patchbay/plugin.hpp"

namespace patchbay {

class StepFault {
  public:
    bool faulty() const { return !text_.empty(); }
    void set_fault(std::string text) noexcept { text_ = std::move(text); }
    // "" where the step has none; it has none afterwards.
    std::string take_fault() noexcept { return std::exchange(text_, {}); }

    void begin_step() noexcept { text_.clear(); }
    void end_step() { throw_fault(take_fault()); } // throws the fault

  protected:
    static void throw_fault(const std::string& text) {
        if (!text.empty()) throw Error(PB_INVALID, text);
    }

  private:
    std::string text_;
};

}  // namespace patchbay
