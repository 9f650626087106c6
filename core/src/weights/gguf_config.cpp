#include <algorithm>
#include <map>

#include "base/refusals.hpp"
#include "weights/gguf_end_names.hpp"
#include "weights/gguf_keys.hpp"

namespace patchbay::weights {
namespace {

class ConfigOf {
  public:
    ConfigOf(const Gguf& file, std::string architecture) : keys_{file, std::move(architecture), {}} {}

    Result<FlatConfig> read() {
        PB_CHECK(check_causal());
        PB_CHECK(read_shapes());
        PB_CHECK(keys_.at_most("block_count", 1024)); // as models take them: more would only fill the memory
        PB_CHECK(keys_.at_most("attention.key_length", 1024));
        PB_TRY(const bool own_keys, read_gguf_family(keys_));
        if (is("gpt2")) {
            PB_CHECK(read_gpt2());
        } else if (!own_keys) {
            PB_CHECK(read_decoder());
            if (is("gemma") || is("gemma2") || is("gemma3")) {
                PB_CHECK(read_gemma());
            } else if (is("phi3")) {
                keys_.name_it("Phi3ForCausalLM", "phi3");
                out("hidden_act") = "silu";
            } else {
                PB_CHECK(read_llama());
            }
        }
        PB_CHECK(read_tokens());
        return std::move(keys_.out);
    }

  private:
    bool is(std::string_view architecture) const { return keys_.is(architecture); }
    std::string& out(const std::string& key) { return keys_.out[key]; }
    std::string own(const std::string& key) const { return keys_.own(key); }

    Result<> check_causal() const {
        const GgufValue* const causal = keys_.find(own("attention.causal"));
        if (!causal || causal->truth().value_or(false)) return {};
        if (!causal->truth()) return keys_.fault(own("attention.causal"), "true or false");
        return unsupported(keys_.file.where + ": " + own("attention.causal") +
                           " is false, expected true: attention to later tokens is not supported");
    }

    // What the tensors say.
    Result<> read_shapes() {
        const auto& tensors = keys_.file.header.tensors;
        const auto at = tensors.find("token_embd.weight");
        if (at == tensors.end() || at->second.shape.size() != 2)
            return invalid(keys_.file.where + ": no matrix 'token_embd.weight' (is it a part of a model?)");
        out("vocab_size") = std::to_string(at->second.shape[0]);
        keys_.set("tie_word_embeddings", !keys_.has_tensor("output.weight"));
        return {};
    }

    Result<> read_gpt2() {
        keys_.name_it("GPT2LMHeadModel", "gpt2");
        out("activation_function") = "gelu_new";
        PB_CHECK(keys_.copy_integer("embedding_length", "n_embd"));
        PB_CHECK(keys_.copy_integer("feed_forward_length", "n_inner"));
        PB_CHECK(keys_.copy_integer("block_count", "n_layer"));
        PB_CHECK(keys_.copy_integer("attention.head_count", "n_head"));
        PB_CHECK(keys_.copy_integer("context_length", "n_positions"));
        return keys_.copy_number("attention.layer_norm_epsilon", "layer_norm_epsilon");
    }

    // What all but gpt2 have.
    Result<> read_decoder() {
        PB_CHECK(keys_.copy_sizes(nullptr));
        PB_CHECK(keys_.copy_kv_heads());
        PB_CHECK(keys_.copy_integer_if_there("attention.sliding_window", "sliding_window"));
        if (keys_.out.contains("sliding_window") && out("sliding_window") == "0") out("sliding_window") = "null";
        PB_TRY(const int64_t head_dim, read_head_dim());
        return read_gguf_positions(keys_, head_dim);
    }

    Result<int64_t> read_head_dim() {
        PB_TRY(const int64_t hidden, keys_.integer(own("embedding_length")));
        PB_TRY(const int64_t heads, keys_.integer(own("attention.head_count")));
        int64_t head_dim = heads ? hidden / heads : 0;
        if (keys_.has(own("attention.key_length"))) {
            PB_TRY(head_dim, keys_.integer(own("attention.key_length")));
        }
        PB_CHECK(keys_.only("attention.value_length", head_dim, ", the length of keys"));
        if (!is("phi3")) PB_CHECK(keys_.only("rope.dimension_count", head_dim, ", the length of keys"));
        out("head_dim") = std::to_string(head_dim);
        return head_dim;
    }

    Result<> read_llama() {
        out("hidden_act") = "silu";
        const bool bias = keys_.has_tensor("blk.0.attn_q.bias");
        if (is("qwen3moe")) return read_qwen3_moe(bias);
        if (is("llama") && keys_.has(own("expert_count"))) {
            PB_TRY(const int64_t experts, keys_.integer(own("expert_count")));
            if (experts > 0) return read_mixtral(bias);
        }
        PB_CHECK(keys_.only("expert_count", 0, ": of mixtures of experts llama and qwen3moe are supported"));
        const bool windows = is("llama") && keys_.out.contains("sliding_window") && out("sliding_window") != "null";
        if (windows) keys_.name_it("MistralForCausalLM", "mistral");
        else if (is("llama")) keys_.name_it("LlamaForCausalLM", "llama");
        else if (is("qwen2")) keys_.name_it("Qwen2ForCausalLM", "qwen2");
        else keys_.name_it("Qwen3ForCausalLM", "qwen3");
        if (!is("qwen2") && bias) out("attention_bias") = "true";
        if (is("llama") && keys_.has_tensor("blk.0.ffn_gate.bias")) out("mlp_bias") = "true";
        return {};
    }

    Result<> read_mixtral(bool bias) {
        keys_.name_it("MixtralForCausalLM", "mixtral");
        if (bias)
            return unsupported(keys_.file.where +
                               ": tensor 'blk.0.attn_q.bias' is there, but the attention of a mixture of " +
                               "experts (llama.expert_count) has no biases");
        return read_experts("num_local_experts");
    }

    Result<> read_qwen3_moe(bool bias) {
        keys_.name_it("Qwen3MoeForCausalLM", "qwen3_moe");
        if (bias) out("attention_bias") = "true";
        out("norm_topk_prob") = "true";  // no key says so; it holds for all that are published
        PB_CHECK(keys_.copy_integer("expert_feed_forward_length", "moe_intermediate_size"));
        return read_experts("num_experts");
    }

    Result<> read_experts(const std::string& count_key) {
        PB_CHECK(keys_.copy_integer("expert_count", count_key));
        PB_CHECK(keys_.copy_integer("expert_used_count", "num_experts_per_tok"));
        PB_CHECK(keys_.only("expert_shared_count", 0));
        PB_CHECK(keys_.only("expert_gating_func", 1, ", softmax"));
        PB_CHECK(keys_.only("leading_dense_block_count", 0));
        return keys_.only("expert_weights_scale", 1);
    }

    Result<> read_gemma() {
        if (is("gemma")) keys_.name_it("GemmaForCausalLM", "gemma");
        else if (is("gemma2")) keys_.name_it("Gemma2ForCausalLM", "gemma2");
        else keys_.name_it("Gemma3ForCausalLM", "gemma3_text");
        out("hidden_activation") = "gelu_pytorch_tanh";
        if (is("gemma")) return {};
        PB_CHECK(keys_.copy_number_if_there("attn_logit_softcapping", "attn_logit_softcapping"));
        PB_CHECK(keys_.copy_number_if_there("final_logit_softcapping", "final_logit_softcapping"));
        PB_CHECK(read_windows());
        if (is("gemma3")) PB_CHECK(keys_.copy_number_if_there("rope.freq_base_swa", "rope_local_base_freq"));
        // No key says what queries are scaled by. It is their length but in the models of 27B, whose layers tell them.
        PB_TRY(const int64_t layers, keys_.integer(own("block_count")));
        PB_TRY(const int64_t hidden, keys_.integer(own("embedding_length")));
        PB_TRY(const int64_t heads, keys_.integer(own("attention.head_count")));
        const bool is_27b = layers == (is("gemma2") ? 46 : 62) && heads > 0;
        out("query_pre_attn_scalar") = is_27b ? std::to_string(hidden / heads) : out("head_dim");
        return {};
    }

    // Which layers see a window only: every so many-th sees all, or a truth for each.
    Result<> read_windows() {
        if (is("gemma3") && (!keys_.out.contains("sliding_window") || out("sliding_window") == "null")) {
            out("sliding_window_pattern") = "1";  // every layer sees all
            return {};
        }
        const std::string key = own("attention.sliding_window_pattern");
        const GgufValue* const pattern = keys_.find(key);
        if (!pattern) return {};
        if (!pattern->count)
            return is("gemma2") ? keys_.only("attention.sliding_window_pattern", 2)
                                : keys_.copy_integer("attention.sliding_window_pattern", "sliding_window_pattern");
        PB_TRY(const int64_t layers, keys_.integer(own("block_count")));
        if (pattern->type != GgufType::kBool || *pattern->count != static_cast<uint64_t>(layers))
            return keys_.fault(key, "a number, or a truth for each of the " + std::to_string(layers) + " layers");
        for (size_t i = 0; i < pattern->bytes.size(); ++i)
            out("layer_types." + std::to_string(i)) =
                pattern->bytes[i] != std::byte{0} ? "sliding_attention" : "full_attention";
        return {};
    }

    // Of the embedded tokenizer: what ends an output, by id and by name.
    Result<> read_tokens() {
        std::vector<int64_t> ids;
        const auto add = [&](int64_t id) {
            if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
        };
        for (const char* which : {"eos", "eot", "eom"}) {
            const std::string key = std::string("tokenizer.ggml.") + which + "_token_id";
            if (!keys_.has(key)) continue;
            PB_TRY(const int64_t id, keys_.integer(key));
            add(id);
        }
        auto named = named_end_tokens();
        const auto is_there = [&](const char* name) { return named.contains(name); };
        const auto drop = [&](const char* name) {
            if (const auto at = named.find(name); at != named.end()) std::erase(ids, at->second), named.erase(at);
        };
        // Where messages have several parts, <|end|> ends a part, and these the message.
        const bool calls = is_there("<|call|>") || is_there("<|calls|>");
        if (calls && (is_there("<|return|>") || is_there("<|flush|>"))) drop("<|end|>");
        if (is_there("<|tool_response>")) drop("</s>"); // which is plain text then
        for (const auto& [name, id] : named) add(id);
        for (size_t i = 0; i < ids.size(); ++i) out("eos_token_id." + std::to_string(i)) = std::to_string(ids[i]);
        return {};
    }

    std::map<std::string_view, int64_t> named_end_tokens() const {
        constexpr size_t kMaxTokens = 1u << 22; // more are no tokenizer
        constexpr double kControl = 3;          // of token_type
        std::map<std::string_view, int64_t> named;
        const GgufValue* const tokens = keys_.find("tokenizer.ggml.tokens");
        const auto texts = tokens && tokens->count.value_or(0) <= kMaxTokens ? tokens->texts() : std::nullopt;
        if (!texts) return named;
        const GgufValue* const types = keys_.find("tokenizer.ggml.token_type");
        const auto kinds = types && types->count == texts->size() ? types->numbers() : std::nullopt;
        // A token that has no row in the model never comes.
        const int64_t rows = keys_.file.header.tensors.at("token_embd.weight").shape[0];
        for (size_t id = 0; id < texts->size() && static_cast<int64_t>(id) < rows; ++id) {
            const std::string_view name = (*texts)[id];
            const bool is_control = kinds && (*kinds)[id] == kControl;
            if (ends_output(name) || (is_control && ends_output_if_control(name))) named.emplace(name, id);
        }
        return named;
    }

    GgufKeys keys_;
};

}  // namespace

Result<FlatConfig> gguf_config(const Gguf& file) {
    PB_TRY(const std::string architecture, gguf_architecture(file));
    PB_TRY(FlatConfig out, ConfigOf(file, architecture).read());
    if (out.size() > kMaxConfigKeys)
        return invalid(file.where + " has more than " + std::to_string(kMaxConfigKeys) + " values of a configuration");
    return out;
}

}  // namespace patchbay::weights
