#include "engine/simulation.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::engine {

Result<pb_device_info> info_of(const host::Device& device) {
    pb_device_info info{};
    info.struct_size = sizeof info;
    PB_CHECK(device.checked<&pb_device::info>(&info));
    return info;
}

Result<std::unique_ptr<Clock>> clock_for(const config::EngineConfig& c, const host::Registry& registry) {
    ThreadPool pool(1);
    PB_TRY(const auto device, registry.device(c.device.plugin, c.device.settings, {&pool.service(), nullptr, nullptr}));
    PB_TRY(const pb_device_info info, info_of(device));
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

TokenId synthetic_token(uint64_t seed, uint64_t position, uint32_t vocab_size, std::span<const TokenId> eos,
                        std::span<const TokenId> stop_ids) {
    auto token = static_cast<TokenId>(draw(seed, position, Stream::kSample, 0)[0] % vocab_size);
    const auto ends = [&](TokenId t) {
        return std::find(eos.begin(), eos.end(), t) != eos.end() ||
               std::find(stop_ids.begin(), stop_ids.end(), t) != stop_ids.end();
    };
    // Of so many neighbours one ends nothing, unless every token does.
    for (size_t i = 0; i < eos.size() + stop_ids.size() && ends(token); ++i)
        token = static_cast<TokenId>((static_cast<uint32_t>(token) + 1) % vocab_size);
    return token;
}

float synthetic_logprob(uint64_t seed, uint64_t position) {
    return -static_cast<float>(uniform(draw(seed, position, Stream::kDraft, 1)[0]));
}

TokenId next_allowed(TokenId token, std::span<const uint32_t> mask, uint32_t vocab_size) {
    for (uint32_t i = 0; i < vocab_size; ++i) {
        const uint32_t next = (static_cast<uint32_t>(token) + i) % vocab_size;
        if (mask[next / 32] >> (next % 32) & 1) return static_cast<TokenId>(next);
    }
    return token;
}

Result<> check_simulated(const SamplingParams& p, TokenText text) {
    const auto unsupported = [](const std::string& what, const std::string& why) {
        return fail(StatusCode::kUnsupported, what + " on a device that computes nothing: " + why);
    };
    const char* const of_logits = p.logprobs            ? "logprobs"
                                  : p.prompt_logprobs   ? "prompt_logprobs"
                                  : p.logits_statistics ? "logits_statistics"
                                                        : nullptr;
    if (of_logits) return unsupported(of_logits, "there are no logits");
    if (p.allowed_token_ids || !p.bad_words.empty())
        return unsupported("allowed_token_ids and bad_words", "its tokens are made up");
    if (text == TokenText::kScripted) return {};
    if (!p.stop.empty()) return unsupported("stop strings", "its text is made up");
    if (p.structured_outputs) return unsupported("structured_outputs", "its text is made up");
    return {};
}

}  // namespace patchbay::engine
