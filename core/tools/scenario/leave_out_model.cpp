#include "scenario/leave_out_model.hpp"

#include <string>

#include "config/engine_config.hpp"

namespace patchbay::scenario {

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

}  // namespace patchbay::scenario
