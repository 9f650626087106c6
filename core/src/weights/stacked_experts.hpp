// The experts of a mixture in safetensors that have one tensor for all experts of a layer ("…mlp.experts.gate_up_proj",
// as gpt-oss): seen as a tensor for each expert, by the names that models ask for. Used by the checkpoint.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weights/checkpoint.hpp"

namespace patchbay::weights {

struct StackedExpert {
    std::string tensor; // of all experts, the outermost size: "a.experts.up"; its biases are "a.experts.up_bias"
    int64_t expert = 0;
    enum class Holds { kMatrix, kOther } holds = Holds::kMatrix; // matrices lie there as (in, out)
};

// Of "a.experts.3.up.weight", ".bias", ".weight_blocks" or ".weight_scales"; none: it is no such name.
std::optional<StackedExpert> stacked_expert(std::string_view name);
// Whether a tensor of such a shape has that expert.
bool has_expert(const StackedExpert&, const std::vector<int64_t>& shape);
// Its part of that tensor, which has it.
TensorView expert_view(const StackedExpert&, const TensorView& all);

}  // namespace patchbay::weights
