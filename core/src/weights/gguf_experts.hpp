// The experts of a mixture in GGUF files: a tensor of all for each kind of matrix, (experts, rows, columns), or, in
// older files, a tensor for each. Hugging Face names every expert's matrices. Used by gguf_tensors().
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "weights/gguf_model.hpp"

namespace patchbay::weights {

struct ExpertNaming {  // Hugging Face's, in a layer: "mlp.gate", "mlp.experts.0.gate_proj"
    std::string_view block, router, gate, up, down;
    std::string_view gate_up{};  // of gate and up as one matrix, with their rows in turn; empty: they are two there too
};

// In a layer, of its tensor "ffn_gate_inp" (the router) or "ffn_up.7" (an expert's): "mlp.experts.7.up_proj".
std::optional<std::string> expert_name(const ExpertNaming&, std::string_view stem);
// Whether it is a tensor of all experts: "ffn_up_exps".
bool holds_experts(const ExpertNaming&, std::string_view stem);
// Adds each expert's part of such a tensor. name: the file's, of weights or biases; layer: what Hugging Face's names
// begin with.
Result<> add_experts(const Gguf&, const ExpertNaming&, const std::string& name, std::string_view stem,
                     const std::string& layer, GgufTensors& out);
// Puts each expert's gate and up together, where Hugging Face has them so.
Result<> join_gates(const Gguf&, const ExpertNaming&, GgufTensors& tensors);

}  // namespace patchbay::weights
