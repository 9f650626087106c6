#include "step_faults.hpp"

namespace patchbay {

void StepFaults::wait_step() {
    if (submitted_.empty()) throw Error(PB_INVALID, "wait_step without a step that was submitted");
    const std::string text = std::move(submitted_.front());
    submitted_.pop_front();
    throw_fault(text);
}

}  // namespace patchbay
