#include "runner/step_inputs.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/refusals.hpp"

namespace patchbay::runner {

namespace {
constexpr uint64_t kAlign = 64;
}

uint64_t StepInputs::room_for(uint64_t count, uint64_t element_bytes) {
    return std::max(kAlign, (count * element_bytes + kAlign - 1) / kAlign * kAlign);
}

const std::byte* StepInputs::place(std::span<const std::byte> bytes) {
    const size_t at = staged_.size();
    staged_.resize(at + room_for(bytes.size(), 1));
    if (!bytes.empty()) std::memcpy(staged_.data() + at, bytes.data(), bytes.size());
    return staged_.size() > memory_.bytes() ? nullptr : memory_.data() + at;
}

Result<> StepInputs::send() {
    if (staged_.size() > memory_.bytes())
        return broken("a step has inputs of " + std::to_string(staged_.size()) + " bytes, expected at most " +
                      std::to_string(memory_.bytes()));
    return device_->checked<&pb_device::to_device>(memory_.data(), staged_.data(), staged_.size());
}

}  // namespace patchbay::runner
