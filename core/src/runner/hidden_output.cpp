// Hidden states on their way out of a ModelRunner, for embeddings.
#include <cstring>

#include "patchbay/sdk/tensor.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::runner {

uint32_t ModelRunner::hidden_size() const {
    const bool readable = its_.info.activation_dtype == PB_F32 || its_.info.activation_dtype == PB_BF16;
    return readable && (facts_.flags & PB_MODEL_GIVES_HIDDEN) ? facts_.hidden_size : 0;
}

// states (tokens, hidden_size) in the device's memory and its activation_dtype.
Result<> ModelRunner::copy_hidden(const pb_tensor& states, std::span<const TokenRange> ranges) {
    const size_t width = facts_.hidden_size, element = static_cast<size_t>(dtype_bytes(states.dtype));
    for (const TokenRange& range : ranges) {
        const size_t count = range.count * width, bytes = count * element;
        const auto* from = static_cast<const std::byte*>(states.data) + range.first * width * element;
        if (!its_.info.host_memory) {
            hidden_bytes_.resize(bytes);
            PB_CHECK(device_.checked<&pb_device::to_host>(hidden_bytes_.data(), from, bytes));
            from = hidden_bytes_.data();
        }
        const size_t before = hidden_out_.size();
        hidden_out_.resize(before + count);
        float* const to = hidden_out_.data() + before;
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
