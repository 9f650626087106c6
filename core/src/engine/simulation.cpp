#include "engine/simulation.hpp"

#include "base/thread_pool.hpp"
#include "config/engine_config.hpp"
#include "execution/load_model.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {

Result<std::unique_ptr<Clock>> clock_for(const config::EngineConfig& c, const host::Registry& registry) {
    ThreadPool pool(1);
    const host::Registry allowed = c.allowed_plugins ? registry.restricted_to(*c.allowed_plugins) : registry;
    PB_TRY(const auto device, allowed.device(c.device.plugin, c.device.settings, {&pool.service(), nullptr, nullptr}));
    PB_TRY(const pb_device_info info, execution::info_of(device));
    if (info.computes) return std::unique_ptr<Clock>(std::make_unique<RealClock>());
    return std::unique_ptr<Clock>(std::make_unique<VirtualClock>());
}

void leave_out_model(config::EngineConfig& c, uint32_t vocab_size) {
    c.engine.threads = 1;
    c.model.load_format = config::LoadFormat::kDummy;
    c.model.dtype = config::DType::kBf16;
    c.model.tokenizer = "none";
    c.model.shape = {{"architectures.0", "LlamaForCausalLM"}, {"vocab_size", std::to_string(vocab_size)},
                     {"hidden_size", "8"}, {"intermediate_size", "8"}, {"num_hidden_layers", "1"},
                     {"num_attention_heads", "1"}, {"num_key_value_heads", "1"}, {"head_dim", "8"},
                     {"max_position_embeddings", std::to_string(1u << 26)}};
    c.device.plugin = "sim";
    c.device.settings = {{"hardware", "instant"}, {"matmul_bf16", "1e21"}, {"matmul_f32", "1e21"},
                         {"memory_read", "1e21"}, {"memory_bytes", "1000000000000000000"}};
}

}  // namespace patchbay::engine
