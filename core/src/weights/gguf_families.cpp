// The metadata of GGUF files of families whose keys differ from Llama's.

#include <cmath>

#include "base/refusals.hpp"
#include "weights/gguf_keys.hpp"

namespace patchbay::weights {
namespace {

class Family {
  public:
    explicit Family(GgufKeys& keys) : keys_(keys) {}

    Result<bool> read() {
        if (is("gptneox")) return done(read_gpt_neox());
        if (is("falcon")) return done(read_falcon());
        if (is("stablelm")) return done(read_stable_lm());
        if (is("phi2")) return done(read_phi());
        if (is("starcoder2")) return done(read_star_coder());
        if (is("command-r") || is("cohere2")) return done(read_cohere());
        if (is("olmo2") || is("granite") || is("smollm3")) return done(read_rms_norm());
        if (is("qwen2moe")) return done(read_qwen2_moe());
        if (is("gpt-oss")) return done(read_gpt_oss());
        return false;
    }

  private:
    static Result<bool> done(const Result<>& read) {
        if (!read) return read.failure();
        return true;
    }
    bool is(std::string_view architecture) const { return keys_.architecture == architecture; }
    std::string& out(const std::string& key) { return keys_.out[key]; }
    void set(const std::string& key, bool value) { keys_.out[key] = value ? "true" : "false"; }

    void name_it(const char* architecture, const char* model_type) {
        out("architectures.0") = architecture;
        out("model_type") = model_type;
    }

    // eps: what config.json calls the epsilon of LayerNorm; nullptr: it is RMSNorm's.
    Result<> read_sizes(const char* eps) {
        PB_CHECK(keys_.copy_integer("embedding_length", "hidden_size"));
        PB_CHECK(keys_.copy_integer("feed_forward_length", "intermediate_size"));
        PB_CHECK(keys_.copy_integer("block_count", "num_hidden_layers"));
        PB_CHECK(keys_.copy_integer("attention.head_count", "num_attention_heads"));
        PB_CHECK(keys_.copy_integer("context_length", "max_position_embeddings"));
        if (eps) return keys_.copy_number("attention.layer_norm_epsilon", eps);
        return keys_.copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
    }

    Result<> read_kv_heads() {
        const bool there = keys_.has(keys_.own("attention.head_count_kv"));
        return keys_.copy_integer(there ? "attention.head_count_kv" : "attention.head_count", "num_key_value_heads");
    }

    Result<int64_t> head_dim() const {
        PB_TRY(const int64_t hidden, keys_.integer(keys_.own("embedding_length")));
        PB_TRY(const int64_t heads, keys_.integer(keys_.own("attention.head_count")));
        if (heads == 0 || hidden % heads != 0)
            return keys_.fault(keys_.own("attention.head_count"), "a divisor of embedding_length");
        return hidden / heads;
    }

    // Positions that turn whole heads.
    Result<> read_positions() {
        PB_TRY(const int64_t size, head_dim());
        PB_CHECK(keys_.only("attention.key_length", size, ", embedding_length / head_count"));
        PB_CHECK(keys_.only("attention.value_length", size, ", the length of keys"));
        PB_CHECK(keys_.only("rope.dimension_count", size, ", the length of keys"));
        return read_gguf_positions(keys_, size);
    }

    // Positions that turn the part `key` of each head.
    Result<> read_partial_positions(const char* key) {
        PB_TRY(const int64_t size, head_dim());
        int64_t turning = size;
        if (keys_.has(keys_.own("rope.dimension_count"))) {
            PB_TRY(turning, keys_.integer(keys_.own("rope.dimension_count")));
        }
        if (turning < 2 || turning > size || turning % 2 != 0)
            return keys_.fault(keys_.own("rope.dimension_count"), "an even number to " + std::to_string(size));
        double part = static_cast<double>(turning) / static_cast<double>(size);
        // Models multiply it by the head and drop the fraction.
        if (static_cast<int64_t>(static_cast<double>(size) * part) < turning) part = std::nextafter(part, 1);
        out(key) = text_of(part);
        return read_gguf_positions(keys_, size);
    }

    Result<> forbid(const std::string& tensor, const char* why) const {
        if (!keys_.has_tensor(tensor)) return {};
        return unsupported(keys_.file.where + ": tensor '" + tensor + "' is there, but " + why);
    }

    Result<> read_gpt_neox() {
        name_it("GPTNeoXForCausalLM", "gpt_neox");
        out("hidden_act") = "gelu";
        PB_CHECK(read_sizes("layer_norm_eps"));
        PB_CHECK(read_partial_positions("rotary_pct"));
        set("attention_bias", keys_.has_tensor("blk.0.attn_qkv.bias"));
        const GgufValue* const parallel = keys_.find(keys_.own("use_parallel_residual"));
        if (parallel && !parallel->truth())
            return keys_.fault(keys_.own("use_parallel_residual"), "true or false");
        set("use_parallel_residual", !parallel || *parallel->truth());
        return {};
    }

    Result<> read_falcon() {
        name_it("FalconForCausalLM", "falcon");
        out("activation") = "gelu";
        PB_CHECK(read_sizes("layer_norm_epsilon"));
        out("ffn_hidden_size") = out("intermediate_size");
        PB_CHECK(keys_.copy_integer("attention.head_count_kv", "num_kv_heads"));
        PB_CHECK(read_positions());
        const bool two_norms = keys_.has_tensor("blk.0.attn_norm_2.weight"), grouped = out("num_kv_heads") != "1";
        set("alibi", false);
        set("parallel_attn", true);
        set("bias", keys_.has_tensor("blk.0.attn_qkv.bias"));
        set("multi_query", true);
        set("new_decoder_architecture", grouped || two_norms);
        if (grouped || two_norms) out("num_ln_in_parallel_attn") = two_norms ? "2" : "1";
        return {};
    }

    Result<> read_stable_lm() {
        name_it("StableLmForCausalLM", "stablelm");
        out("hidden_act") = "silu";
        PB_CHECK(read_sizes("layer_norm_eps"));
        PB_CHECK(read_kv_heads());
        PB_CHECK(read_partial_positions("partial_rotary_factor"));
        PB_CHECK(forbid("blk.0.attn_q_norm.weight", "norms of each head with weights of their own are not supported"));
        set("use_qkv_bias", keys_.has_tensor("blk.0.attn_q.bias"));
        set("use_parallel_residual", !keys_.has_tensor("blk.0.ffn_norm.weight")); // converters write no reliable key
        return {};
    }

    Result<> read_phi() {
        name_it("PhiForCausalLM", "phi");
        out("hidden_act") = "gelu_new";
        PB_CHECK(read_sizes("layer_norm_eps"));
        PB_CHECK(read_kv_heads());
        return read_partial_positions("partial_rotary_factor");
    }

    Result<> read_star_coder() {
        name_it("Starcoder2ForCausalLM", "starcoder2");
        out("hidden_act") = "gelu_pytorch_tanh";
        PB_CHECK(read_sizes("norm_epsilon"));
        PB_CHECK(read_kv_heads());
        PB_CHECK(read_positions());
        out("sliding_window") = "4096"; // of all that are published; converters write no key
        PB_CHECK(keys_.copy_integer_if_there("attention.sliding_window", "sliding_window"));
        set("use_bias", keys_.has_tensor("blk.0.attn_q.bias"));
        return {};
    }

    Result<> read_cohere() {
        if (is("cohere2")) name_it("Cohere2ForCausalLM", "cohere2");
        else name_it("CohereForCausalLM", "cohere");
        out("hidden_act") = "silu";
        PB_CHECK(read_sizes("layer_norm_eps"));
        PB_CHECK(read_kv_heads());
        PB_CHECK(read_positions());
        PB_CHECK(keys_.copy_number("logit_scale", "logit_scale"));
        PB_CHECK(forbid("blk.0.attn_q_norm.weight", "norms of each head (Command R+) are not supported"));
        set("attention_bias", keys_.has_tensor("blk.0.attn_q.bias"));
        if (is("command-r")) return {};
        out("sliding_window_pattern") = "4";
        return keys_.copy_integer("attention.sliding_window", "sliding_window");
    }

    Result<> read_rms_norm() {
        out("hidden_act") = "silu";
        PB_CHECK(read_sizes(nullptr));
        PB_CHECK(read_kv_heads());
        PB_CHECK(read_positions());
        set("attention_bias", keys_.has_tensor("blk.0.attn_q.bias"));
        if (is("olmo2")) {
            name_it("Olmo2ForCausalLM", "olmo2");
            return {};
        }
        set("mlp_bias", keys_.has_tensor("blk.0.ffn_gate.bias"));
        if (is("smollm3")) {
            name_it("SmolLM3ForCausalLM", "smollm3");
            out("no_rope_layer_interval") = "4"; // of all that are published; no key says so
            return {};
        }
        name_it("GraniteForCausalLM", "granite");
        PB_CHECK(keys_.copy_number("embedding_scale", "embedding_multiplier"));
        PB_CHECK(keys_.copy_number("residual_scale", "residual_multiplier"));
        PB_CHECK(keys_.copy_number("attention.scale", "attention_multiplier"));
        return keys_.copy_number("logit_scale", "logits_scaling");
    }

    Result<> read_qwen2_moe() {
        name_it("Qwen2MoeForCausalLM", "qwen2_moe");
        out("hidden_act") = "silu";
        PB_CHECK(read_sizes(nullptr));
        PB_CHECK(read_kv_heads());
        PB_CHECK(read_positions());
        PB_CHECK(keys_.copy_integer("expert_count", "num_experts"));
        PB_CHECK(keys_.copy_integer("expert_used_count", "num_experts_per_tok"));
        PB_CHECK(keys_.copy_integer("expert_feed_forward_length", "moe_intermediate_size"));
        PB_CHECK(keys_.copy_integer("expert_shared_feed_forward_length", "shared_expert_intermediate_size"));
        set("norm_topk_prob", false); // of all that are published; no key says so
        set("qkv_bias", keys_.has_tensor("blk.0.attn_q.bias"));
        PB_TRY(const int64_t layers, keys_.integer(keys_.own("block_count")));
        size_t dense = 0;
        for (int64_t i = 0; i < layers; ++i)
            if (keys_.has_tensor("blk." + std::to_string(i) + ".ffn_up.weight"))
                out("mlp_only_layers." + std::to_string(dense++)) = std::to_string(i);
        return {};
    }

    // The limit of the experts' gate and which layers have windows: of all that are published; no key says so.
    Result<> read_gpt_oss() {
        name_it("GptOssForCausalLM", "gpt_oss");
        PB_CHECK(read_sizes(nullptr));
        PB_CHECK(read_kv_heads());
        PB_CHECK(keys_.copy_integer("expert_feed_forward_length", "intermediate_size"));
        PB_CHECK(keys_.copy_integer("expert_count", "num_local_experts"));
        PB_CHECK(keys_.copy_integer("expert_used_count", "num_experts_per_tok"));
        PB_CHECK(keys_.copy_integer("attention.sliding_window", "sliding_window"));
        PB_CHECK(keys_.copy_integer("attention.key_length", "head_dim"));
        PB_TRY(const int64_t size, keys_.integer(keys_.own("attention.key_length")));
        PB_CHECK(keys_.only("attention.value_length", size, ", the length of keys"));
        PB_CHECK(keys_.only("rope.dimension_count", size, ", the length of keys"));
        set("attention_bias", keys_.has_tensor("blk.0.attn_q.bias"));
        PB_CHECK(read_gguf_positions(keys_, size));
        std::string& type = out("rope_scaling.rope_type");
        if (type.empty()) type = "default";
        if (type != "yarn") return {};
        set("rope_scaling.truncate", false);
        PB_CHECK(keys_.copy_number_if_there("rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"));
        return keys_.copy_number_if_there("rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow");
    }

    GgufKeys& keys_;
};

}  // namespace

Result<bool> read_gguf_family(GgufKeys& keys) { return Family(keys).read(); }

}  // namespace patchbay::weights
