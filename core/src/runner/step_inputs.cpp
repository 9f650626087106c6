#include "runner/step_inputs.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace patchbay::runner {

namespace {
constexpr uint64_t kAlign = 64;
}

StepInputs::~StepInputs() {
    if (memory_) device_->call<&pb_device::free>(memory_);
}

uint64_t StepInputs::room_for(uint64_t count, uint64_t element_bytes) {
    return std::max(kAlign, (count * element_bytes + kAlign - 1) / kAlign * kAlign);
}

Result<> StepInputs::reserve(uint64_t bytes) {
    if (memory_) device_->call<&pb_device::free>(memory_);
    memory_ = nullptr;
    reserved_ = 0;
    void* memory = nullptr;
    PB_CHECK(device_->checked<&pb_device::alloc>(bytes, &memory));
    memory_ = static_cast<std::byte*>(memory);
    reserved_ = bytes;
    return {};
}

const std::byte* StepInputs::place(std::span<const std::byte> bytes) {
    const size_t at = staged_.size();
    staged_.resize(at + room_for(bytes.size(), 1));
    if (!bytes.empty()) std::memcpy(staged_.data() + at, bytes.data(), bytes.size());
    return staged_.size() > reserved_ ? nullptr : memory_ + at;
}

Result<> StepInputs::send() {
    if (staged_.size() > reserved_)
        return fail("a step has inputs of " + std::to_string(staged_.size()) + " bytes, expected at most " +
                    std::to_string(reserved_));
    return device_->checked<&pb_device::to_device>(memory_, staged_.data(), staged_.size());
}

}  // namespace patchbay::runner
