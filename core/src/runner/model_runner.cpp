#include "runner/model_runner.hpp"

#include <utility>

namespace patchbay::runner {

ModelRunner::ModelRunner(std::shared_ptr<OpenDevice> device, std::shared_ptr<AttentionInUse> attention,
                         host::Model model, Clock& clock, const Ranks* ranks)
    : device_(std::move(device)), attention_(std::move(attention)), model_(std::move(model)),
      weights_(*device_, ranks), kv_(*device_, attention_->component(), clock),
      passes_({*device_, clock, model_, *attention_, weights_.in_use(), kv_, hidden_}) {
    attention_->add(kv_.layers(), [this] { passes_.graphs().renew(); });
}

ModelRunner::~ModelRunner() {
    passes_.abandon();
    if (ranks_) ranks_->watch(nullptr);
}

Result<> ModelRunner::reconnect() {
    const host::Device& device = device_->plugin;
    host::call<&pb_device_collectives::disconnect>(*device.component);
    passes_.graphs().renew(); // they exchange over the old connection, which NCCL ends when none is left
    return device.checked<&pb_device_collectives::connect>(&ranks_->wire());
}

}  // namespace patchbay::runner
