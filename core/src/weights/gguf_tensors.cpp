#include <algorithm>
#include <optional>
#include <utility>

#include "weights/gguf_experts.hpp"

namespace patchbay::weights {
namespace {

using Name = std::pair<std::string_view, std::string_view>;  // the file's, Hugging Face's
constexpr Name kLlama[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr Name kLlamaLayer[] = {{"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
                                {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
                                {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"},
                                {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
                                {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
                                {"ffn_down", "mlp.down_proj"}};
constexpr Name kGpt2[] = {{"token_embd", "transformer.wte"},
                          {"position_embd", "transformer.wpe"},
                          {"output_norm", "transformer.ln_f"},
                          {"output", "lm_head"}};
constexpr Name kGpt2Layer[] = {{"attn_norm", "ln_1"}, {"attn_qkv", "attn.c_attn"}, {"attn_output", "attn.c_proj"},
                               {"ffn_norm", "ln_2"},  {"ffn_up", "mlp.c_fc"},      {"ffn_down", "mlp.c_proj"}};

// Gemma's, from the second generation on; the first has ffn_norm where Llama has it.
constexpr Name kGemmaLayer[] = {{"attn_norm", "input_layernorm"},
                                {"attn_q", "self_attn.q_proj"},
                                {"attn_k", "self_attn.k_proj"},
                                {"attn_v", "self_attn.v_proj"},
                                {"attn_q_norm", "self_attn.q_norm"},
                                {"attn_k_norm", "self_attn.k_norm"},
                                {"attn_output", "self_attn.o_proj"},
                                {"post_attention_norm", "post_attention_layernorm"},
                                {"ffn_norm", "pre_feedforward_layernorm"},
                                {"ffn_gate", "mlp.gate_proj"},
                                {"ffn_up", "mlp.up_proj"},
                                {"ffn_down", "mlp.down_proj"},
                                {"post_ffw_norm", "post_feedforward_layernorm"}};

constexpr Name kPhi3Layer[] = {{"attn_norm", "input_layernorm"},
                               {"attn_qkv", "self_attn.qkv_proj"},
                               {"attn_output", "self_attn.o_proj"},
                               {"ffn_norm", "post_attention_layernorm"},
                               {"ffn_up", "mlp.gate_up_proj"},
                               {"ffn_down", "mlp.down_proj"}};

struct Naming {
    std::string_view architecture;
    std::span<const Name> model, layer;
    std::string_view layers;  // before a layer's number
    float norms_added = 0;    // by converters, to the numbers of norms
    ExpertNaming experts{};
};
constexpr ExpertNaming kMixtral{"block_sparse_moe.", "gate", "w1", "w3", "w2"};
constexpr ExpertNaming kQwen3Moe{"mlp.", "gate", "gate_proj", "up_proj", "down_proj"};
constexpr Naming kNamings[] = {{"llama", kLlama, kLlamaLayer, "model.layers.", 0, kMixtral},
                               {"qwen2", kLlama, kLlamaLayer, "model.layers."},
                               {"qwen3", kLlama, kLlamaLayer, "model.layers."},
                               {"qwen3moe", kLlama, kLlamaLayer, "model.layers.", 0, kQwen3Moe},
                               {"gpt2", kGpt2, kGpt2Layer, "transformer.h."},
                               {"gemma", kLlama, kLlamaLayer, "model.layers.", 1},
                               {"gemma2", kLlama, kGemmaLayer, "model.layers.", 1},
                               {"gemma3", kLlama, kGemmaLayer, "model.layers.", 1},
                               {"phi3", kLlama, kPhi3Layer, "model.layers."}};

struct Split {
    std::string_view layer, stem, kind;  // "12", "attn_q", "weight"; layer: empty where it is of none
};

std::optional<Split> split(std::string_view name) {
    Split out;
    if (name.starts_with("blk.")) {
        name.remove_prefix(4);
        out.layer = name.substr(0, name.find('.'));
        if (out.layer.empty() || out.layer.find_first_not_of("0123456789") != out.layer.npos) return std::nullopt;
        name.remove_prefix(std::min(out.layer.size() + 1, name.size()));
    }
    const size_t dot = name.rfind('.');
    if (dot == name.npos) return std::nullopt;
    out.stem = name.substr(0, dot);
    out.kind = name.substr(dot + 1);
    if (out.kind != "weight" && out.kind != "bias") return std::nullopt;
    return out;
}

// What the names in a layer begin with.
std::string begin_of(const Naming& naming, const Split& part) {
    return part.layer.empty() ? "" : std::string(naming.layers) + std::string(part.layer) + ".";
}

std::optional<std::string> hugging_face_name(const Naming& naming, const Split& part) {
    const std::string begin = begin_of(naming, part), end = "." + std::string(part.kind);
    for (const auto& [ours, theirs] : part.layer.empty() ? naming.model : naming.layer)
        if (ours == part.stem) return begin + std::string(theirs) + end;
    if (part.layer.empty()) return std::nullopt;
    const auto theirs = expert_name(naming.experts, part.stem);
    return theirs ? std::optional(begin + *theirs + end) : std::nullopt;
}

// Converters of llama models reorder the rows of each head of q and k, for kernels that turn neighbours
// (2·i, 2·i + 1) where Hugging Face's turn (i, i + head_dim / 2).
Result<int64_t> rows_interleaved(const Gguf& file, const std::string& name, const Split& part, int64_t rows) {
    if (part.stem != "attn_q" && part.stem != "attn_k") return int64_t{0};
    const GgufValue* heads = part.stem == "attn_k" ? file.header.find("llama.attention.head_count_kv") : nullptr;
    if (!heads) heads = file.header.find("llama.attention.head_count");
    const int64_t count = heads ? heads->integer().value_or(0) : 0;
    if (count < 1 || rows % count != 0 || rows / count % 2 != 0)
        return fail(file.where + ": tensor '" + name + "' has " + std::to_string(rows) + " rows, expected " +
                    std::to_string(count) + " heads of an even size");
    return rows / count;
}

const Naming* naming_of(const Gguf& file) {
    const GgufValue* const value = file.header.find("general.architecture");
    const auto name = value ? value->text() : std::nullopt;
    for (const Naming& naming : kNamings)
        if (name == naming.architecture) return &naming;
    return nullptr;
}

}  // namespace

Result<std::string> gguf_architecture(const Gguf& file) {
    if (const Naming* const naming = naming_of(file)) return std::string(naming->architecture);
    const GgufValue* const value = file.header.find("general.architecture");
    std::string known;
    for (const Naming& naming : kNamings) known += (known.empty() ? "" : ", ") + std::string(naming.architecture);
    return fail(file.where + ": general.architecture is " + (value ? value->shown() : "not there") +
                ", of GGUF files these are supported: " + known);
}

Result<GgufTensors> gguf_tensors(const Gguf& file) {
    PB_TRY(const std::string architecture, gguf_architecture(file));
    const Naming& naming = *naming_of(file);
    GgufTensors out;
    for (const auto& [name, tensor] : file.header.tensors) {
        const auto part = split(name);
        if (part && !part->layer.empty() && part->kind == "weight" && holds_experts(naming.experts, part->stem)) {
            PB_CHECK(add_experts(file, naming.experts, name, part->stem, begin_of(naming, *part), out));
            continue;
        }
        const auto theirs = part ? hugging_face_name(naming, *part) : std::nullopt;
        if (!theirs) continue;
        if (!tensor.encoding) {
            out.unread.emplace(*theirs, tensor.type);
            continue;
        }
        TensorView view{*tensor.encoding, tensor.shape, tensor.data, tensor.end - tensor.begin};
        if (part->stem.ends_with("norm")) view.added = naming.norms_added;
        if (architecture == "llama") {
            PB_TRY(view.interleaved, rows_interleaved(file, name, *part, tensor.shape[0]));
        }
        // GPT-2's folder has its linears as (in, out).
        if (architecture == "gpt2" && !part->layer.empty() && view.shape.size() == 2) {
            std::swap(view.shape[0], view.shape[1]);
            view.turned = true;
        }
        out.read.emplace(*theirs, std::move(view));
    }
    return out;
}

}  // namespace patchbay::weights
