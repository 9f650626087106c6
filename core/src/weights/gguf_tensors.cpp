#include <algorithm>
#include <optional>
#include <utility>

#include "base/refusals.hpp"
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

// What others have in place of Llama's, or beside it.
constexpr Name kGemmaLayer[] = {{"post_attention_norm", "post_attention_layernorm"}, // from the second generation on
                                {"ffn_norm", "pre_feedforward_layernorm"},
                                {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr Name kOlmo2Layer[] = {{"post_attention_norm", "post_attention_layernorm"},
                                {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr Name kPhiLayer[] = {{"attn_output", "self_attn.dense"}, {"ffn_up", "mlp.fc1"}, {"ffn_down", "mlp.fc2"}};
constexpr Name kPhi3Layer[] = {{"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}};
constexpr Name kStarCoderLayer[] = {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};
constexpr Name kGptOssLayer[] = {{"attn_sinks", "self_attn.sinks"},
                                 {"post_attention_norm", "post_attention_layernorm"}};
constexpr Name kQwen2MoeLayer[] = {{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                                   {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                   {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                   {"ffn_down_shexp", "mlp.shared_expert.down_proj"}};

constexpr Name kGptNeox[] = {{"token_embd", "gpt_neox.embed_in"},
                             {"output_norm", "gpt_neox.final_layer_norm"},
                             {"output", "embed_out"}};
constexpr Name kGptNeoxLayer[] = {{"attn_norm", "input_layernorm"},     {"attn_qkv", "attention.query_key_value"},
                                  {"attn_output", "attention.dense"},   {"ffn_norm", "post_attention_layernorm"},
                                  {"ffn_up", "mlp.dense_h_to_4h"},      {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr Name kFalcon[] = {{"token_embd", "transformer.word_embeddings"},
                            {"output_norm", "transformer.ln_f"},
                            {"output", "lm_head"}};
constexpr Name kFalconLayer[] = {{"attn_norm", "input_layernorm"},
                                 {"attn_qkv", "self_attention.query_key_value"},
                                 {"attn_output", "self_attention.dense"},
                                 {"ffn_up", "mlp.dense_h_to_4h"},
                                 {"ffn_down", "mlp.dense_4h_to_h"}};
// Falcon's with two norms: the first is the MLP's.
constexpr Name kFalconNorms[] = {{"attn_norm", "ln_mlp"}, {"attn_norm_2", "ln_attn"}};
constexpr Name kPhi[] = {{"token_embd", "model.embed_tokens"},
                         {"output_norm", "model.final_layernorm"},
                         {"output", "lm_head"}};
struct Naming {
    std::string_view architecture;
    std::span<const Name> model, layer;  // layer: before Llama's, where layers are named as its
    std::string_view layers;             // before a layer's number
    float norms_added = 0;    // by converters, to the numbers of norms
    ExpertNaming experts{};
    // How converters reorder the rows of q and k.
    enum class Rows { kAsTheyAre, kInterleaved, kFused } rows = Rows::kAsTheyAre;
};
using Rows = Naming::Rows;
constexpr ExpertNaming kMixtral{"block_sparse_moe.", "gate", "w1", "w3", "w2"};
constexpr ExpertNaming kQwen3Moe{"mlp.", "gate", "gate_proj", "up_proj", "down_proj"};
constexpr ExpertNaming kGptOss{"mlp.", "router", "gate_proj", "up_proj", "down_proj", "gate_up_proj"};
constexpr std::string_view kLayers = "model.layers.";
constexpr Naming kNamings[] = {
    {"llama", kLlama, {}, kLayers, 0, kMixtral, Rows::kInterleaved},
    {"qwen2", kLlama, {}, kLayers},
    {"qwen2moe", kLlama, kQwen2MoeLayer, kLayers, 0, kQwen3Moe},
    {"qwen3", kLlama, {}, kLayers},
    {"qwen3moe", kLlama, {}, kLayers, 0, kQwen3Moe},
    {"gpt2", kGpt2, kGpt2Layer, "transformer.h."},
    {"gptneox", kGptNeox, kGptNeoxLayer, "gpt_neox.layers.", 0, {}, Rows::kFused},
    {"falcon", kFalcon, kFalconLayer, "transformer.h.", 0, {}, Rows::kFused},
    {"gemma", kLlama, {}, kLayers, 1},
    {"gemma2", kLlama, kGemmaLayer, kLayers, 1},
    {"gemma3", kLlama, kGemmaLayer, kLayers, 1},
    {"phi2", kPhi, kPhiLayer, kLayers},
    {"phi3", kLlama, kPhi3Layer, kLayers},
    {"stablelm", kLlama, {}, kLayers},
    {"starcoder2", kLlama, kStarCoderLayer, kLayers},
    {"command-r", kLlama, {}, kLayers},
    {"cohere2", kLlama, {}, kLayers},
    {"olmo2", kLlama, kOlmo2Layer, kLayers},
    {"granite", kLlama, {}, kLayers, 0, {}, Rows::kInterleaved},
    {"smollm3", kLlama, {}, kLayers, 0, {}, Rows::kInterleaved},
    {"gpt-oss", kLlama, kGptOssLayer, kLayers, 0, kGptOss}};

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
    const auto named = [&](std::span<const Name> names) -> std::optional<std::string> {
        for (const auto& [ours, theirs] : names)
            if (ours == part.stem) return begin + std::string(theirs) + end;
        return std::nullopt;
    };
    if (part.layer.empty()) return named(naming.model);
    if (const auto known = named(naming.layer)) return known;
    if (naming.layers == kLayers)
        if (const auto known = named(kLlamaLayer)) return known;
    const auto theirs = expert_name(naming.experts, part.stem);
    return theirs ? std::optional(begin + *theirs + end) : std::nullopt;
}

int64_t size_at(const Gguf& file, const std::string& key) {
    const GgufValue* const value = file.header.find(key);
    return value ? value->integer().value_or(0) : 0;
}

// Converters of llama models reorder the rows of each head of q and k, for kernels that turn neighbours
// (2·i, 2·i + 1) where Hugging Face's turn (i, i + head_dim / 2).
Result<int64_t> rows_interleaved(const Gguf& file, const Naming& naming, const std::string& name, const Split& part,
                                 int64_t rows) {
    if (part.stem != "attn_q" && part.stem != "attn_k") return int64_t{0};
    const std::string heads = std::string(naming.architecture) + ".attention.head_count";
    const bool of_kv = part.stem == "attn_k" && file.header.find(heads + "_kv");
    const int64_t count = size_at(file, of_kv ? heads + "_kv" : heads);
    if (count < 1 || rows % count != 0 || rows / count % 2 != 0)
        return invalid(file.where + ": tensor '" + name + "' has " + std::to_string(rows) + " rows, expected " +
                       std::to_string(count) + " heads of an even size");
    return rows / count;
}

// Those of GPT-NeoX and Falcon part q, k and v, which Hugging Face has head by head.
Result<FusedHeads> rows_fused(const Gguf& file, const Naming& naming, const std::string& name, int64_t rows) {
    const std::string key = std::string(naming.architecture) + ".attention.head_count";
    const int64_t heads = size_at(file, key), given = size_at(file, key + "_kv"), kv = given ? given : heads;
    if (heads < 1 || heads > rows || kv < 1 || kv > heads || heads % kv != 0 || rows % (heads + 2 * kv) != 0)
        return invalid(file.where + ": tensor '" + name + "' has " + std::to_string(rows) +
                       " rows, expected those of " + std::to_string(heads) + " heads of q and " +
                       std::to_string(kv) + " of k and v");
    return FusedHeads{kv, heads / kv, rows / (heads + 2 * kv)};
}

// Older files of Phi 2 have q, k and v in one matrix and one bias, one part below the other.
Result<> add_parts_of_qkv(const Gguf& file, const Naming& naming, const std::string& name, const Split& part,
                          GgufTensors& out) {
    const GgufTensor& tensor = file.header.tensors.find(name)->second;
    if (tensor.shape.size() == 1 && tensor.encoding && in_blocks(*tensor.encoding)) // which parts may cut
        return invalid(file.where + ": tensor '" + name + "' is " + facts_of(*tensor.encoding).name +
                       ", expected a bias of real numbers");
    PB_TRY(const FusedHeads heads, rows_fused(file, naming, name, tensor.shape[0]));
    const int64_t kv = heads.kv_heads * heads.size;
    const std::pair<const char*, int64_t> parts[] = {{"q", kv * heads.queries}, {"k", kv}, {"v", kv}};
    const uint64_t row = (tensor.end - tensor.begin) / static_cast<uint64_t>(tensor.shape[0]);
    const std::byte* data = tensor.data;
    for (const auto& [letter, rows] : parts) {
        const std::string theirs = begin_of(naming, part) + "self_attn." + letter + "_proj." + std::string(part.kind);
        if (!tensor.encoding) {
            out.unread.emplace(theirs, tensor.type);
            continue;
        }
        TensorView view{*tensor.encoding, tensor.shape, data, row * static_cast<uint64_t>(rows)};
        view.shape[0] = rows;
        data += view.bytes;
        out.read.emplace(theirs, std::move(view));
    }
    return {};
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
    return unsupported(file.where + ": general.architecture is " + (value ? value->shown() : "not there") +
                       ", of GGUF files these are supported: " + known);
}

Result<GgufTensors> gguf_tensors(const Gguf& file) {
    PB_TRY(const std::string architecture, gguf_architecture(file));
    const Naming& naming = *naming_of(file);
    GgufTensors out;
    for (const auto& [name, tensor] : file.header.tensors) {
        const auto part = split(name);
        if (part && !part->layer.empty() && holds_experts(naming.experts, part->stem)) {
            PB_CHECK(add_experts(file, naming.experts, name, part->stem, begin_of(naming, *part), out));
            continue;
        }
        if (architecture == "phi2" && part && part->stem == "attn_qkv") {
            PB_CHECK(add_parts_of_qkv(file, naming, name, *part, out));
            continue;
        }
        auto theirs = part ? hugging_face_name(naming, *part) : std::nullopt;
        if (architecture == "falcon" && part && file.header.tensors.contains("blk.0.attn_norm_2.weight"))
            for (const auto& [ours, own] : kFalconNorms)
                if (ours == part->stem)
                    theirs = begin_of(naming, *part) + std::string(own) + "." + std::string(part->kind);
        if (!theirs) continue;
        if (part->stem == "attn_sinks") theirs->resize(theirs->size() - std::string_view(".weight").size());
        if (!tensor.encoding) {
            out.unread.emplace(*theirs, tensor.type);
            continue;
        }
        TensorView view{*tensor.encoding, tensor.shape, tensor.data, tensor.end - tensor.begin};
        if (part->stem.ends_with("norm")) view.added = naming.norms_added;
        if (naming.rows == Rows::kInterleaved) {
            PB_TRY(view.interleaved, rows_interleaved(file, naming, name, *part, tensor.shape[0]));
        }
        if (naming.rows == Rows::kFused && part->stem == "attn_qkv") {
            PB_TRY(view.fused, rows_fused(file, naming, name, tensor.shape[0]));
        }
        if (part->stem == "ffn_gate_inp_shexp" && view.shape.size() == 1) view.shape = {1, tensor.shape[0]};
        // GPT-2's folder has its linears as (in, out).
        if (architecture == "gpt2" && !part->layer.empty() && view.shape.size() == 2) {
            std::swap(view.shape[0], view.shape[1]);
            view.turned = true;
        }
        out.read.emplace(*theirs, std::move(view));
    }
    PB_CHECK(join_gates(file, naming.experts, out));
    return out;
}

}  // namespace patchbay::weights
