#include "step_faults.hpp"

#include "patchbay/plugin.hpp"

namespace patchbay {

void StepFaults::end_step() {
    if (fault_.empty()) return;
    const std::string text = std::exchange(fault_, {});
    throw Error(PB_INVALID, text);
}

void StepFaults::submit_step() { submitted_.push_back(std::exchange(fault_, {})); }

void StepFaults::wait_step() {
    if (submitted_.empty()) throw Error(PB_INVALID, "wait_step without a step that was submitted");
    const std::string text = std::move(submitted_.front());
    submitted_.pop_front();
    if (!text.empty()) throw Error(PB_INVALID, text);
}

}  // namespace patchbay
