// The metadata of GGUF files of families whose keys differ from Llama's.

#include "base/refusals.hpp"
#include "weights/gguf_keys.hpp"

namespace patchbay::weights {
namespace {

Result<int64_t> head_dim(const GgufKeys& keys) {
    PB_TRY(const int64_t hidden, keys.integer(keys.own("embedding_length")));
    PB_TRY(const int64_t heads, keys.integer(keys.own("attention.head_count")));
    if (heads == 0 || hidden % heads != 0)
        return keys.fault(keys.own("attention.head_count"), "a divisor of embedding_length");
    return hidden / heads;
}

// Positions that turn whole heads.
Result<> read_positions(GgufKeys& keys) {
    PB_TRY(const int64_t size, head_dim(keys));
    PB_CHECK(keys.only("attention.key_length", size, ", embedding_length / head_count"));
    PB_CHECK(keys.only("attention.value_length", size, ", the length of keys"));
    PB_CHECK(keys.only("rope.dimension_count", size, ", the length of keys"));
    return read_gguf_positions(keys, size);
}

// Positions that turn the part `key` of each head.
Result<> read_partial_positions(GgufKeys& keys, const char* key) {
    PB_TRY(const int64_t size, head_dim(keys));
    PB_CHECK(keys.copy_turning_part(size, key));
    return read_gguf_positions(keys, size);
}

Result<> forbid(const GgufKeys& keys, const std::string& tensor, const char* why) {
    if (!keys.has_tensor(tensor)) return {};
    return unsupported(keys.file.where + ": tensor '" + tensor + "' is there, but " + why);
}

Result<> read_gpt_neox(GgufKeys& keys) {
    keys.name_it("GPTNeoXForCausalLM", "gpt_neox");
    keys.out["hidden_act"] = "gelu";
    PB_CHECK(keys.copy_sizes("layer_norm_eps"));
    PB_CHECK(read_partial_positions(keys, "rotary_pct"));
    keys.set("attention_bias", keys.has_tensor("blk.0.attn_qkv.bias"));
    const GgufValue* const parallel = keys.find(keys.own("use_parallel_residual"));
    if (parallel && !parallel->truth())
        return keys.fault(keys.own("use_parallel_residual"), "true or false");
    keys.set("use_parallel_residual", !parallel || *parallel->truth());
    return {};
}

Result<> read_falcon(GgufKeys& keys) {
    keys.name_it("FalconForCausalLM", "falcon");
    keys.out["activation"] = "gelu";
    PB_CHECK(keys.copy_sizes("layer_norm_epsilon"));
    keys.out["ffn_hidden_size"] = keys.out["intermediate_size"];
    PB_CHECK(keys.copy_integer("attention.head_count_kv", "num_kv_heads"));
    PB_CHECK(read_positions(keys));
    const bool two_norms = keys.has_tensor("blk.0.attn_norm_2.weight"), grouped = keys.out["num_kv_heads"] != "1";
    keys.set("alibi", false);
    keys.set("parallel_attn", true);
    keys.set("bias", keys.has_tensor("blk.0.attn_qkv.bias"));
    keys.set("multi_query", true);
    keys.set("new_decoder_architecture", grouped || two_norms);
    if (grouped || two_norms) keys.out["num_ln_in_parallel_attn"] = two_norms ? "2" : "1";
    return {};
}

Result<> read_stable_lm(GgufKeys& keys) {
    keys.name_it("StableLmForCausalLM", "stablelm");
    keys.out["hidden_act"] = "silu";
    PB_CHECK(keys.copy_sizes("layer_norm_eps"));
    PB_CHECK(keys.copy_kv_heads());
    PB_CHECK(read_partial_positions(keys, "partial_rotary_factor"));
    PB_CHECK(forbid(keys, "blk.0.attn_q_norm.weight",
                    "norms of each head with weights of their own are not supported"));
    keys.set("use_qkv_bias", keys.has_tensor("blk.0.attn_q.bias"));
    keys.set("use_parallel_residual", !keys.has_tensor("blk.0.ffn_norm.weight")); // converters write no reliable key
    return {};
}

Result<> read_phi(GgufKeys& keys) {
    keys.name_it("PhiForCausalLM", "phi");
    keys.out["hidden_act"] = "gelu_new";
    PB_CHECK(keys.copy_sizes("layer_norm_eps"));
    PB_CHECK(keys.copy_kv_heads());
    return read_partial_positions(keys, "partial_rotary_factor");
}

Result<> read_star_coder(GgufKeys& keys) {
    keys.name_it("Starcoder2ForCausalLM", "starcoder2");
    keys.out["hidden_act"] = "gelu_pytorch_tanh";
    PB_CHECK(keys.copy_sizes("norm_epsilon"));
    PB_CHECK(keys.copy_kv_heads());
    PB_CHECK(read_positions(keys));
    keys.out["sliding_window"] = "4096"; // of all that are published; converters write no key
    PB_CHECK(keys.copy_integer_if_there("attention.sliding_window", "sliding_window"));
    keys.set("use_bias", keys.has_tensor("blk.0.attn_q.bias"));
    return {};
}

Result<> read_cohere(GgufKeys& keys) {
    if (keys.is("cohere2")) keys.name_it("Cohere2ForCausalLM", "cohere2");
    else keys.name_it("CohereForCausalLM", "cohere");
    keys.out["hidden_act"] = "silu";
    PB_CHECK(keys.copy_sizes("layer_norm_eps"));
    PB_CHECK(keys.copy_kv_heads());
    PB_CHECK(read_positions(keys));
    PB_CHECK(keys.copy_number("logit_scale", "logit_scale"));
    PB_CHECK(forbid(keys, "blk.0.attn_q_norm.weight", "norms of each head (Command R+) are not supported"));
    keys.set("attention_bias", keys.has_tensor("blk.0.attn_q.bias"));
    if (keys.is("command-r")) return {};
    keys.out["sliding_window_pattern"] = "4";
    return keys.copy_integer("attention.sliding_window", "sliding_window");
}

Result<> read_rms_norm(GgufKeys& keys) {
    keys.out["hidden_act"] = "silu";
    PB_CHECK(keys.copy_sizes(nullptr));
    PB_CHECK(keys.copy_kv_heads());
    PB_CHECK(read_positions(keys));
    keys.set("attention_bias", keys.has_tensor("blk.0.attn_q.bias"));
    PB_CHECK(keys.only("attention.sliding_window", 0, ": windows of this architecture are not supported"));
    if (keys.is("olmo2")) {
        keys.name_it("Olmo2ForCausalLM", "olmo2");
        return {};
    }
    keys.set("mlp_bias", keys.has_tensor("blk.0.ffn_gate.bias"));
    if (keys.is("smollm3")) {
        keys.name_it("SmolLM3ForCausalLM", "smollm3");
        keys.out["no_rope_layer_interval"] = "4"; // of all that are published; no key says so
        return {};
    }
    keys.name_it("GraniteForCausalLM", "granite");
    PB_CHECK(keys.copy_number("embedding_scale", "embedding_multiplier"));
    PB_CHECK(keys.copy_number("residual_scale", "residual_multiplier"));
    PB_CHECK(keys.copy_number("attention.scale", "attention_multiplier"));
    return keys.copy_number("logit_scale", "logits_scaling");
}

// Older files have only the length of all experts of a token, which is also that of the shared one.
Result<> read_qwen2_moe_sizes(GgufKeys& keys) {
    PB_TRY(const int64_t length, keys.integer(keys.own("feed_forward_length")));
    PB_TRY(const int64_t used, keys.integer(keys.own("expert_used_count")));
    if (used == 0) return keys.fault(keys.own("expert_used_count"), "a number above 0");
    keys.out["moe_intermediate_size"] = std::to_string(length / used);
    keys.out["shared_expert_intermediate_size"] = std::to_string(length);
    PB_CHECK(keys.copy_integer_if_there("expert_feed_forward_length", "moe_intermediate_size"));
    return keys.copy_integer_if_there("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
}

Result<> read_qwen2_moe(GgufKeys& keys) {
    keys.name_it("Qwen2MoeForCausalLM", "qwen2_moe");
    keys.out["hidden_act"] = "silu";
    PB_CHECK(keys.copy_sizes(nullptr));
    PB_CHECK(keys.copy_kv_heads());
    PB_CHECK(read_positions(keys));
    PB_CHECK(keys.copy_integer("expert_count", "num_experts"));
    PB_CHECK(keys.copy_integer("expert_used_count", "num_experts_per_tok"));
    PB_CHECK(read_qwen2_moe_sizes(keys));
    keys.set("norm_topk_prob", false); // of all that are published; no key says so
    keys.set("qkv_bias", keys.has_tensor("blk.0.attn_q.bias"));
    PB_TRY(const int64_t layers, keys.integer(keys.own("block_count")));
    size_t dense = 0;
    for (int64_t i = 0; i < layers; ++i)
        if (keys.has_tensor("blk." + std::to_string(i) + ".ffn_up.weight"))
            keys.out["mlp_only_layers." + std::to_string(dense++)] = std::to_string(i);
    return {};
}

// The limit of the experts' gate and which layers have windows: of all that are published; no key says so.
Result<> read_gpt_oss(GgufKeys& keys) {
    keys.name_it("GptOssForCausalLM", "gpt_oss");
    PB_CHECK(keys.copy_sizes(nullptr));
    PB_CHECK(keys.copy_kv_heads());
    PB_CHECK(keys.copy_integer("expert_feed_forward_length", "intermediate_size"));
    PB_CHECK(keys.copy_integer("expert_count", "num_local_experts"));
    PB_CHECK(keys.copy_integer("expert_used_count", "num_experts_per_tok"));
    PB_CHECK(keys.copy_integer("attention.sliding_window", "sliding_window"));
    PB_CHECK(keys.copy_integer("attention.key_length", "head_dim"));
    PB_TRY(const int64_t size, keys.integer(keys.own("attention.key_length")));
    PB_CHECK(keys.only("attention.value_length", size, ", the length of keys"));
    PB_CHECK(keys.only("rope.dimension_count", size, ", the length of keys"));
    keys.set("attention_bias", keys.has_tensor("blk.0.attn_q.bias"));
    PB_CHECK(read_gguf_positions(keys, size));
    std::string& type = keys.out["rope_scaling.rope_type"];
    if (type.empty()) type = "default";
    if (type == "yarn") keys.set("rope_scaling.truncate", false);
    return {};
}

struct Family {
    const char* architecture;
    Result<> (*read)(GgufKeys&);
};
constexpr Family kFamilies[] = {
    {"gptneox", read_gpt_neox},      {"falcon", read_falcon},       {"stablelm", read_stable_lm},
    {"phi2", read_phi},              {"starcoder2", read_star_coder}, {"command-r", read_cohere},
    {"cohere2", read_cohere},        {"olmo2", read_rms_norm},      {"granite", read_rms_norm},
    {"smollm3", read_rms_norm},      {"qwen2moe", read_qwen2_moe},  {"gpt-oss", read_gpt_oss}};

}  // namespace

Result<bool> read_gguf_family(GgufKeys& keys) {
    for (const Family& family : kFamilies) {
        if (!keys.is(family.architecture)) continue;
        PB_CHECK(family.read(keys));
        return true;
    }
    return false;
}

}  // namespace patchbay::weights
