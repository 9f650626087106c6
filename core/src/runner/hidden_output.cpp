#include "runner/hidden_output.hpp"

#include <cstring>

#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner {

uint32_t HiddenOutput::width(const pb_model_facts& facts) const {
    const pb_dtype dtype = device_.info.activation_dtype;
    const bool readable = dtype == PB_F32 || dtype == PB_BF16;
    return readable && (facts.flags & PB_MODEL_GIVES_HIDDEN) ? facts.hidden_size : 0;
}

Result<> HiddenOutput::append(const pb_tensor& states, std::span<const TokenRange> ranges) {
    const auto width = static_cast<size_t>(states.shape[1]), element = static_cast<size_t>(dtype_bytes(states.dtype));
    for (const TokenRange& range : ranges) {
        const size_t count = range.count * width, bytes = count * element;
        const auto* from = static_cast<const std::byte*>(states.data) + range.first * width * element;
        if (!device_.info.host_memory) {
            bytes_.resize(bytes);
            PB_CHECK(device_.plugin.checked<&pb_device::to_host>(bytes_.data(), from, bytes));
            from = bytes_.data();
        }
        const size_t before = out_.size();
        out_.resize(before + count);
        float* const to = out_.data() + before;
        if (states.dtype == PB_F32) {
            std::memcpy(to, from, bytes);
            continue;
        }
        for (size_t i = 0; i < count; ++i) {
            uint16_t bits;
            std::memcpy(&bits, from + 2 * i, sizeof bits);
            to[i] = bf16_to_f32(bits);
        }
    }
    return {};
}

}  // namespace patchbay::runner
