#include "runner/attention_sinks.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace patchbay::runner {

Result<AttentionSinks> AttentionSinks::of(const host::Component& model, uint32_t layer_count) {
    AttentionSinks out;
    out.weights_.resize(layer_count, 0);
    out.placed_.resize(layer_count, nullptr);
    const uint32_t count = host::call<&pb_model::weight_count>(model);
    for (uint32_t layer = 0; layer < layer_count; ++layer) {
        pb_kv_spec kv = sized<pb_kv_spec>();
        PB_CHECK(host::checked<&pb_model::kv_spec>(model, layer, &kv));
        if (kv.sinks == 0) continue;
        const auto refuse = [&](const std::string& why) {
            return fail("layer " + std::to_string(layer) + " has its attention sinks in weight " +
                        std::to_string(kv.sinks - 1) + ", " + why);
        };
        if (kv.sinks > count) return refuse("and there are " + std::to_string(count));
        pb_weight_spec spec = sized<pb_weight_spec>();
        PB_CHECK(host::checked<&pb_model::weight>(model, kv.sinks - 1, &spec));
        if (spec.role != PB_WEIGHT_VECTOR || spec.tied_to > 0 || spec.of_target != PB_TARGET_NONE)
            return refuse("which is not a vector of its own");
        if (spec.cols != kv.heads)
            return refuse("a vector of " + std::to_string(spec.cols) + ", expected one number for each of its " +
                          std::to_string(kv.heads) + " heads");
        out.weights_[layer] = kv.sinks;
    }
    return out;
}

bool AttentionSinks::are_in(uint32_t weight) const {
    return std::find(weights_.begin(), weights_.end(), weight + 1) != weights_.end();
}

Result<> AttentionSinks::place(const host::Device& device, uint32_t weight, std::span<const std::byte> values) {
    for (size_t layer = 0; layer < weights_.size(); ++layer) {
        if (weights_[layer] != weight + 1) continue;
        PB_CHECK(device.checked<&pb_device::alloc>(values.size(), &placed_[layer]));
        PB_CHECK(device.checked<&pb_device::to_device>(placed_[layer], values.data(), values.size()));
    }
    return {};
}

void AttentionSinks::release(const host::Device& device) {
    for (void*& memory : placed_)
        if (memory) device.call<&pb_device::free>(std::exchange(memory, nullptr));
}

}  // namespace patchbay::runner
