#include <charconv>
#include <cstring>

#include "weights/gguf_model.hpp"

namespace patchbay::weights {
namespace {

// A float as the shortest text that reads as it.
std::string text_of(float value) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    return std::string(text, end);
}

class ConfigOf {
  public:
    ConfigOf(const Gguf& file, std::string architecture)
        : file_(file), header_(file.header), where_(file.where), architecture_(std::move(architecture)) {}

    Result<FlatConfig> read() {
        if (architecture_ == "gpt2") {
            PB_CHECK(read_gpt2());
        } else {
            PB_CHECK(read_llama());
        }
        PB_CHECK(read_tokens());
        return std::move(out_);
    }

  private:
    Failure fault(const std::string& key, const std::string& expected) const {
        const GgufValue* const value = header_.find(key);
        return fail(where_ + ": " + key + " is " + (value ? value->shown() : "not there") + ", expected " + expected);
    }
    std::string own(const std::string& key) const { return architecture_ + "." + key; }
    bool has(const std::string& key) const { return header_.find(key) != nullptr; }

    Result<int64_t> integer(const std::string& key) const {
        const GgufValue* const value = header_.find(key);
        const auto number = value ? value->integer() : std::nullopt;
        if (!number || *number < 0 || *number > INT32_MAX) return fault(key, "a size");
        return *number;
    }
    Result<double> number(const std::string& key) const {
        const GgufValue* const value = header_.find(key);
        const auto number = value ? value->number() : std::nullopt;
        if (!number) return fault(key, "a number");
        return *number;
    }
    // Which key of config.json gets the value of the architecture's own key.
    Result<> copy_integer(const std::string& from, const std::string& to) {
        PB_TRY(const int64_t value, integer(own(from)));
        out_[to] = std::to_string(value);
        return {};
    }
    Result<> copy_number(const std::string& from, const std::string& to) {
        PB_TRY(const double value, number(own(from)));
        out_[to] = text_of(static_cast<float>(value));
        return {};
    }

    // What the tensors say.
    Result<> read_shapes() {
        const auto at = header_.tensors.find("token_embd.weight");
        if (at == header_.tensors.end() || at->second.shape.size() != 2)
            return fail(where_ + ": no matrix 'token_embd.weight' (is it a part of a model?)");
        out_["vocab_size"] = std::to_string(at->second.shape[0]);
        out_["tie_word_embeddings"] = header_.tensors.contains("output.weight") ? "false" : "true";
        return {};
    }

    Result<> read_gpt2() {
        out_["architectures.0"] = "GPT2LMHeadModel";
        out_["model_type"] = "gpt2";
        out_["activation_function"] = "gelu_new";
        PB_CHECK(read_shapes());
        PB_CHECK(copy_integer("embedding_length", "n_embd"));
        PB_CHECK(copy_integer("feed_forward_length", "n_inner"));
        PB_CHECK(copy_integer("block_count", "n_layer"));
        PB_CHECK(copy_integer("attention.head_count", "n_head"));
        PB_CHECK(copy_integer("context_length", "n_positions"));
        return copy_number("attention.layer_norm_epsilon", "layer_norm_epsilon");
    }

    Result<> read_llama() {
        const bool qwen = architecture_ != "llama";
        out_["architectures.0"] = !qwen                      ? "LlamaForCausalLM"
                                  : architecture_ == "qwen2" ? "Qwen2ForCausalLM"
                                                             : "Qwen3ForCausalLM";
        out_["model_type"] = architecture_;
        out_["hidden_act"] = "silu";
        if (has(own("expert_count"))) {
            PB_TRY(const int64_t experts, integer(own("expert_count")));
            if (experts > 0) return fault(own("expert_count"), "0: mixtures of experts are read from safetensors only");
        }
        PB_CHECK(read_shapes());
        PB_CHECK(copy_integer("embedding_length", "hidden_size"));
        PB_CHECK(copy_integer("feed_forward_length", "intermediate_size"));
        PB_CHECK(copy_integer("block_count", "num_hidden_layers"));
        PB_CHECK(copy_integer("attention.head_count", "num_attention_heads"));
        const char* const kv_heads = "attention.head_count_kv";
        PB_CHECK(copy_integer(has(own(kv_heads)) ? kv_heads : "attention.head_count", "num_key_value_heads"));
        PB_CHECK(copy_integer("context_length", "max_position_embeddings"));
        PB_CHECK(copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps"));
        if (has(own("attention.sliding_window"))) PB_CHECK(copy_integer("attention.sliding_window", "sliding_window"));
        if (architecture_ != "qwen2" && header_.tensors.contains("blk.0.attn_q.bias")) out_["attention_bias"] = "true";
        if (!qwen && header_.tensors.contains("blk.0.ffn_gate.bias")) out_["mlp_bias"] = "true";
        PB_TRY(const int64_t head_dim, read_head_dim());
        return read_rope(head_dim);
    }

    Result<int64_t> read_head_dim() {
        PB_TRY(const int64_t hidden, integer(own("embedding_length")));
        PB_TRY(const int64_t heads, integer(own("attention.head_count")));
        int64_t head_dim = heads ? hidden / heads : 0;
        if (has(own("attention.key_length"))) {
            PB_TRY(head_dim, integer(own("attention.key_length")));
        }
        const std::string same = std::to_string(head_dim) + ", the length of keys";
        for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
            if (!has(own(key))) continue;
            PB_TRY(const int64_t length, integer(own(key)));
            if (length != head_dim) return fault(own(key), same);
        }
        out_["head_dim"] = std::to_string(head_dim);
        return head_dim;
    }

    Result<> read_rope(int64_t head_dim) {
        out_["rope_theta"] = "10000";
        if (has(own("rope.freq_base"))) PB_CHECK(copy_number("rope.freq_base", "rope_theta"));
        if (header_.tensors.contains("rope_freqs.weight")) return read_rope_factors(head_dim);
        const std::string type_key = own("rope.scaling.type");
        const GgufValue* const given = header_.find(type_key);
        if (!given && has(own("rope.scale_linear"))) {
            PB_CHECK(copy_number("rope.scale_linear", "rope_scaling.factor"));
            out_["rope_scaling.rope_type"] = "linear";
        }
        if (!given || given->text() == "none") return {};
        if (given->text() != "linear" && given->text() != "yarn") return fault(type_key, "none, linear or yarn");
        out_["rope_scaling.rope_type"] = *given->text();
        PB_CHECK(copy_number("rope.scaling.factor", "rope_scaling.factor"));
        if (has(own("rope.scaling.attn_factor"))) {
            PB_TRY(const double factor, number(own("rope.scaling.attn_factor")));
            if (factor != 1) return fault(own("rope.scaling.attn_factor"), "1");
        }
        if (given->text() == "yarn" && has(own("rope.scaling.original_context_length")))
            PB_CHECK(
                copy_integer("rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings"));
        return {};
    }

    // A factor for each pair of a head, which its frequency is divided by: what Llama 3's scaling comes to.
    Result<> read_rope_factors(int64_t head_dim) {
        const auto& [name, tensor] = *header_.tensors.find("rope_freqs.weight");
        if (tensor.encoding != Encoding::kF32 || tensor.shape != std::vector<int64_t>{head_dim / 2})
            return fail(where_ + ": tensor '" + name + "' is not " + std::to_string(head_dim / 2) + " f32 numbers");
        out_["rope_scaling.rope_type"] = "longrope";
        out_["rope_scaling.attention_factor"] = "1";
        out_["original_max_position_embeddings"] = out_["max_position_embeddings"];  // they hold for all positions
        for (int64_t i = 0; i < head_dim / 2; ++i) {
            float factor;
            std::memcpy(&factor, file_.bytes.data() + tensor.begin + i * 4, 4);
            out_["rope_scaling.short_factor." + std::to_string(i)] = text_of(factor);
        }
        return {};
    }

    // Of the embedded tokenizer: what ends an output.
    Result<> read_tokens() {
        int count = 0;
        std::string last;
        for (const char* which : {"eos", "eot"}) {
            const std::string key = std::string("tokenizer.ggml.") + which + "_token_id";
            if (!has(key)) continue;
            PB_TRY(const int64_t id, integer(key));
            if (const std::string text = std::to_string(id); text != last)
                out_["eos_token_id." + std::to_string(count++)] = last = text;
        }
        return {};
    }

    const Gguf& file_;
    const GgufHeader& header_;
    const std::string& where_;
    std::string architecture_;
    FlatConfig out_;
};

}  // namespace

Result<FlatConfig> gguf_config(const Gguf& file) {
    PB_TRY(const std::string architecture, gguf_architecture(file));
    return ConfigOf(file, architecture).read();
}

}  // namespace patchbay::weights
