#include "host/op_names.hpp"

namespace patchbay::host {

bool has_op(const pb_ops& ops, std::string_view name) {
    const struct {
        std::string_view name;
        bool there;
    } all[] = {
        {"embedding", ops.embedding != nullptr},
        {"linear", ops.linear != nullptr},
        {"rms_norm", ops.rms_norm != nullptr},
        {"add_rms_norm", ops.add_rms_norm != nullptr},
        {"rope", ops.rope != nullptr},
        {"silu_mul", ops.silu_mul != nullptr},
        {"add", ops.add != nullptr},
        {"gather_rows", ops.gather_rows != nullptr},
        {"all_reduce", ops.all_reduce != nullptr},
        {"layer_norm", ops.layer_norm != nullptr},
        {"relu", ops.relu != nullptr},
        {"gelu_tanh", ops.gelu_tanh != nullptr},
        {"gelu_tanh_mul", ops.gelu_tanh_mul != nullptr},
        {"scale", ops.scale != nullptr},
        {"soft_cap", ops.soft_cap != nullptr},
        {"top_k", ops.top_k != nullptr},
        {"expert_linear", ops.expert_linear != nullptr},
        {"weighted_sum", ops.weighted_sum != nullptr},
        {"all_gather", ops.all_gather != nullptr},
        {"gated_mlp", ops.gated_mlp != nullptr},
        {"causal_conv_silu", ops.causal_conv_silu != nullptr},
        {"ssm_scan", ops.ssm_scan != nullptr},
        {"take_tokens", ops.take_tokens != nullptr},
    };
    for (const auto& op : all)
        if (op.name == name) return op.there;
    return false;
}

}  // namespace patchbay::host
