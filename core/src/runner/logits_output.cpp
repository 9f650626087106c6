#include "runner/logits_output.hpp"

namespace patchbay::runner {

Result<std::span<float>> LogitsOutput::fetch(const pb_tensor& logits, size_t rows) {
    const size_t count = rows * static_cast<size_t>(logits.shape[1]);
    auto* const there = static_cast<float*>(logits.data);
    if (device_.info.host_memory || count == 0) return std::span(there, count);
    copy_.resize(count);
    PB_CHECK(device_.plugin.checked<&pb_device::to_host>(copy_.data(), there, count * sizeof(float)));
    return std::span(copy_);
}

}  // namespace patchbay::runner
