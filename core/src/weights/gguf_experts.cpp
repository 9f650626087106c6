#include "weights/gguf_experts.hpp"

#include "base/refusals.hpp"

namespace patchbay::weights {
namespace {

constexpr size_t kMaxMatrices = 1 << 17;  // of all experts of a file; three times the largest published models'
constexpr std::string_view kAll = "_exps";

// "ffn_up": Hugging Face's name of that matrix; empty: there is no such one.
std::string_view matrix_name(const ExpertNaming& naming, std::string_view stem) {
    return stem == "ffn_gate" ? naming.gate : stem == "ffn_up" ? naming.up : stem == "ffn_down" ? naming.down : "";
}

std::string joined(const ExpertNaming& naming, std::string_view expert, std::string_view matrix) {
    return std::string(naming.block) + "experts." + std::string(expert) + "." + std::string(matrix);
}

}  // namespace

std::optional<std::string> expert_name(const ExpertNaming& naming, std::string_view stem) {
    if (naming.block.empty()) return std::nullopt;
    if (stem == "ffn_gate_inp") return std::string(naming.block) + std::string(naming.router);
    const size_t dot = stem.find('.');
    if (dot == stem.npos || dot + 1 == stem.size()) return std::nullopt;
    const std::string_view expert = stem.substr(dot + 1), matrix = matrix_name(naming, stem.substr(0, dot));
    if (matrix.empty() || expert.find_first_not_of("0123456789") != expert.npos) return std::nullopt;
    return joined(naming, expert, matrix);
}

bool holds_experts(const ExpertNaming& naming, std::string_view stem) {
    return stem.ends_with(kAll) && !matrix_name(naming, stem.substr(0, stem.size() - kAll.size())).empty();
}

Result<> add_experts(const Gguf& file, const ExpertNaming& naming, const std::string& name, std::string_view stem,
                     const std::string& layer, GgufTensors& out) {
    const GgufTensor& tensor = file.header.tensors.find(name)->second;
    const auto fault = [&](const std::string& what) { return invalid(file.where + ": tensor '" + name + "' " + what); };
    PB_TRY(const std::string architecture, gguf_architecture(file));
    const GgufValue* const counted = file.header.find(architecture + ".expert_count");
    const bool biases = name.ends_with(".bias");
    if (tensor.shape.size() != (biases ? 2u : 3u))
        return fault("has " + std::to_string(tensor.shape.size()) + " dimensions, expected " +
                     (biases ? "2: experts, rows" : "3: experts, rows, columns"));
    const int64_t experts = tensor.shape[0];
    if (!counted || counted->integer() != experts)
        return fault("holds " + std::to_string(experts) + " experts, but " + architecture + ".expert_count is " +
                     (counted ? counted->shown() : "not there"));
    if (static_cast<uint64_t>(experts) + out.experts > kMaxMatrices)
        return fault("is one too many: experts have more than " + std::to_string(kMaxMatrices) + " matrices");
    out.experts += static_cast<size_t>(experts);
    const std::string_view matrix = matrix_name(naming, stem.substr(0, stem.size() - kAll.size()));
    // Rows are whole blocks, so experts are too.
    const uint64_t bytes = (tensor.end - tensor.begin) / static_cast<uint64_t>(experts);
    for (int64_t i = 0; i < experts; ++i) {
        std::string theirs = layer + joined(naming, std::to_string(i), matrix) + (biases ? ".bias" : ".weight");
        if (!tensor.encoding) {
            out.unread.emplace(std::move(theirs), tensor.type);
            continue;
        }
        const std::byte* const data = tensor.data + static_cast<uint64_t>(i) * bytes;
        std::vector<int64_t> shape(tensor.shape.begin() + 1, tensor.shape.end());
        out.read.emplace(std::move(theirs), TensorView{*tensor.encoding, std::move(shape), data, bytes});
    }
    return {};
}

Result<> join_gates(const Gguf& file, const ExpertNaming& naming, GgufTensors& tensors) {
    if (naming.gate_up.empty()) return {};
    const std::string part = "." + std::string(naming.gate) + ".";
    const auto named = [&](const std::string& gate, std::string_view matrix) { // "…3.gate.bias" → "…3.up.bias"
        const size_t at = gate.rfind(part);
        return gate.substr(0, at + 1) + std::string(matrix) + gate.substr(at + part.size() - 1);
    };
    std::map<std::string, TensorView> whole;
    for (const auto& [name, gate] : tensors.read) {
        if (name.find(part) == name.npos) continue;
        const auto up = tensors.read.find(named(name, naming.up));
        if (up == tensors.read.end() || up->second.encoding != gate.encoding || up->second.shape != gate.shape)
            return invalid(file.where + ": '" + name + "' has no '" + named(name, naming.up) +
                           "' of its type and shape beside it");
        TensorView both = gate;
        both.shape[0] *= 2;
        both.odd_rows = up->second.data;
        whole.emplace(named(name, naming.gate_up), std::move(both));
    }
    std::map<std::string, uint32_t> unread;
    for (const auto& [name, type] : tensors.unread)
        if (name.find(part) != name.npos) unread.emplace(named(name, naming.gate_up), type);
    tensors.read.merge(whole);
    tensors.unread.merge(unread);
    return {};
}

}  // namespace patchbay::weights
