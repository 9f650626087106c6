#include "runner/attention_binding.hpp"

#include <algorithm>

namespace patchbay::runner {

AttentionBinding::~AttentionBinding() {
    for (const BoundAttention& b : bound_) {
        if (b.self) host::call<&pb_attention::unbind>(attention_, b.self);
        if (b.plan_buffer) device_.call<&pb_device::free>(b.plan_buffer);
    }
}

Result<> AttentionBinding::bind(std::span<const GroupAttention> all) {
    auto info = sized<pb_device_info>();
    PB_CHECK(device_.checked<&pb_device::info>(&info)); // the device is then this thread's, which plugins for it ask
    for (const auto& [spec, group] : all) {
        pb_attention_layout layout = sized<pb_attention_layout>();
        PB_CHECK(host::checked<&pb_attention::describe>(attention_, &spec, &layout));
        graphs_ = std::min(graphs_, layout.graphs);
        BoundAttention& one = bound_.emplace_back(BoundAttention{nullptr, nullptr, group});
        PB_CHECK(host::checked<&pb_attention::bind>(attention_, &spec, &one.self));
        if (layout.plan_bytes > 0)
            PB_CHECK(device_.checked<&pb_device::alloc>(layout.plan_bytes, &one.plan_buffer));
    }
    return {};
}

}  // namespace patchbay::runner
